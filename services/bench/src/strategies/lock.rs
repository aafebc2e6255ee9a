//! A lock in Redis, as a good library has it: wait up to 2 s, a lease of 30 s, a watchdog that renews
//! it, a token that is compared before it is freed.
//!
//! Nobody polls: freeing a lock publishes a message, and each process wakes the one that has waited
//! longest for it. Whoever comes just then may be faster; that keeps the lock busy, and the one that
//! was woken waits again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError, Script};
use shared::config::limits::{LOCK_LEASE, LOCK_WAIT};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::purchase::Trouble;

#[derive(Clone)]
pub struct Locks(Arc<Inner>);

struct Inner {
    connection: MultiplexedConnection,
    prefix: String,
    unlock: Script,
    renew: Script,
    waiting: Arc<Waiting>,
    listening: AbortHandle,
}

/// By item, those who wait in this process.
#[derive(Default)]
struct Waiting(Mutex<HashMap<String, Arc<Notify>>>);

/// A lock that the caller has.
pub struct Held {
    locks: Locks,
    item: String,
    token: String,
    watchdog: AbortHandle,
}

impl Locks {
    /// Listens on a connection of its own; everything else goes through the shared one.
    pub(super) async fn new(
        client: &Client,
        connection: MultiplexedConnection,
        prefix: &str,
    ) -> Result<Self, RedisError> {
        let mut freed = client.get_async_pubsub().await?;
        freed.subscribe(channel(prefix)).await?;
        let waiting = Arc::new(Waiting::default());
        let woken = Arc::clone(&waiting);
        let listening = tokio::spawn(async move {
            let mut freed = freed.into_on_message();
            while let Some(message) = freed.next().await {
                woken.of(&String::from_utf8_lossy(message.get_payload_bytes())).notify_one();
            }
        });
        Ok(Self(Arc::new(Inner {
            connection,
            prefix: prefix.to_owned(),
            unlock: Script::new(include_str!("lua/unlock.lua")),
            renew: Script::new(include_str!("lua/renew.lua")),
            waiting,
            listening: listening.abort_handle(),
        })))
    }

    /// Waits for the lock of an item, but not for ever.
    pub async fn lock(&self, item: &str) -> Result<Held, Trouble> {
        let begun = Instant::now();
        let token = Uuid::new_v4().to_string();
        let waiting = self.0.waiting.of(item);
        loop {
            if self.take(item, &token).await? {
                let watchdog = tokio::spawn(self.clone().watch(item.to_owned(), token.clone()));
                let (locks, item) = (self.clone(), item.to_owned());
                return Ok(Held { locks, item, token, watchdog: watchdog.abort_handle() });
            }
            let left = LOCK_WAIT.saturating_sub(begun.elapsed());
            if left.is_zero() || timeout(left, waiting.notified()).await.is_err() {
                let waited_ms = begun.elapsed().as_millis();
                return Err(Trouble::LockBusy { item: item.to_owned(), waited_ms });
            }
        }
    }

    async fn take(&self, item: &str, token: &str) -> Result<bool, RedisError> {
        let mut take = redis::cmd("SET");
        take.arg(self.key(item)).arg(token).arg("NX").arg("PX").arg(milliseconds(LOCK_LEASE));
        let taken: Option<String> = take.query_async(&mut self.0.connection.clone()).await?;
        Ok(taken.is_some())
    }

    async fn watch(self, item: String, token: String) {
        loop {
            tokio::time::sleep(LOCK_LEASE / 3).await;
            let mut connection = self.0.connection.clone();
            let renew = &self.0.renew;
            let mut call = renew.key(self.key(&item));
            let call = call.arg(&token).arg(milliseconds(LOCK_LEASE));
            let renewed: Result<String, _> = call.invoke_async(&mut connection).await;
            if renewed.is_ok_and(|reply| reply == "lost") {
                return;
            }
        }
    }

    fn key(&self, item: &str) -> String {
        format!("{}:{{{item}}}:lock", self.0.prefix)
    }
}

impl Held {
    /// Frees it, unless it has lapsed.
    pub async fn release(self) -> Result<(), RedisError> {
        let inner = &self.locks.0;
        let mut call = inner.unlock.key(self.locks.key(&self.item));
        let call = call.key(channel(&inner.prefix)).arg(&self.token).arg(&self.item);
        call.invoke_async::<String>(&mut inner.connection.clone()).await.map(drop)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.watchdog.abort();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Waiting {
    fn of(&self, item: &str) -> Arc<Notify> {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = items.get(item) {
            return Arc::clone(waiting);
        }
        Arc::clone(items.entry(item.to_owned()).or_default())
    }
}

/// On which freed locks are made known.
fn channel(prefix: &str) -> String {
    format!("{prefix}:freed")
}

fn milliseconds(length: Duration) -> String {
    length.as_millis().to_string()
}
