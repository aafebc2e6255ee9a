//! What is left of each item, as a number in Redis. Both scripts act once for each request.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Script};

use super::purchase::{Purchase, Trouble};

/// For how long a request's taking is remembered.
const REMEMBERED_SECONDS: u32 = 24 * 60 * 60;

#[derive(Clone)]
pub struct Counter {
    connection: MultiplexedConnection,
    /// In front of every key.
    prefix: Arc<str>,
    deduct: Arc<Script>,
    restore: Arc<Script>,
}

/// Whether the request has its units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taking {
    Taken,
    SoldOut,
}

impl Counter {
    pub(super) fn new(connection: MultiplexedConnection, prefix: &str) -> Self {
        Self {
            connection,
            prefix: prefix.into(),
            deduct: Arc::new(Script::new(include_str!("lua/deduct.lua"))),
            restore: Arc::new(Script::new(include_str!("lua/restore.lua"))),
        }
    }

    /// Puts items on sale.
    pub async fn put(&self, items: &[String], units: i64) -> Result<(), RedisError> {
        let mut all = redis::pipe();
        for item in items {
            all.set(self.left(item), units).ignore();
        }
        all.exec_async(&mut self.connection.clone()).await
    }

    /// What is left of an item.
    pub async fn available(&self, item: &str) -> Result<Option<u64>, RedisError> {
        redis::cmd("GET").arg(self.left(item)).query_async(&mut self.connection.clone()).await
    }

    pub(super) async fn deduct(&self, purchase: &Purchase) -> Result<Taking, Trouble> {
        let mut call = self.deduct.key(self.left(&purchase.item));
        call.key(self.taken_by(purchase)).arg(purchase.quantity).arg(REMEMBERED_SECONDS);
        let reply: String = call.invoke_async(&mut self.connection.clone()).await?;
        match reply.as_str() {
            "taken" => Ok(Taking::Taken),
            "sold_out" => Ok(Taking::SoldOut),
            "unknown_item" => Err(Trouble::UnknownItem(purchase.item.clone())),
            _ => Err(Trouble::Reply(reply)),
        }
    }

    pub(super) async fn restore(&self, purchase: &Purchase) -> Result<(), Trouble> {
        let mut call = self.restore.key(self.left(&purchase.item));
        call.key(self.taken_by(purchase));
        let reply: String = call.invoke_async(&mut self.connection.clone()).await?;
        match reply.as_str() {
            "done" | "already" => Ok(()),
            _ => Err(Trouble::Reply(reply)),
        }
    }

    fn left(&self, item: &str) -> String {
        format!("{}:{{{item}}}:left", self.prefix)
    }

    fn taken_by(&self, purchase: &Purchase) -> String {
        format!("{}:{{{}}}:taken:{}", self.prefix, purchase.item, purchase.request_id)
    }
}
