//! `freeze.lua`, `thaw.lua`: stop new reservations of a bucket for a moment.

use std::time::Duration;

use uuid::Uuid;

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};

/// What the holder of the item lock shows with every write: its fencing number, and the token of its
/// freeze.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    pub fence: u64,
    pub token: Uuid,
}

/// How a step under the item lock went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeReply {
    /// Nothing is reserved until the lease has passed, or until thaw.
    Frozen,
    /// The bucket sells again.
    Thawed,
    /// The item is not in this Redis.
    Absent,
    /// A later holder of the lock was here.
    Stale { fence: u64 },
    /// The freeze is over, so that units may have been sold since.
    Lapsed,
}

impl Stock {
    /// Freezes a bucket, or renews this freeze. One that has lapsed is not renewed.
    pub async fn freeze(
        &self,
        bucket: &Bucket,
        freeze: Freeze,
        lease: Duration,
    ) -> Result<FreezeReply, StockError> {
        let call = self
            .scripts
            .freeze
            .call()
            .key(self.keys.sale(bucket))
            .arg(freeze.fence)
            .arg(freeze.token)
            .arg(lease.as_millis());
        read("freeze", &self.connection.run::<String>(call).await?)
    }

    /// Ends a freeze.
    pub async fn thaw(&self, bucket: &Bucket, freeze: Freeze) -> Result<FreezeReply, StockError> {
        let call = self
            .scripts
            .thaw
            .call()
            .key(self.keys.sale(bucket))
            .arg(freeze.fence)
            .arg(freeze.token);
        read("thaw", &self.connection.run::<String>(call).await?)
    }
}

fn read(script: &'static str, reply: &str) -> Result<FreezeReply, StockError> {
    let mut words = Words::of(script, reply);
    Ok(match words.word()? {
        "frozen" => FreezeReply::Frozen,
        "thawed" => FreezeReply::Thawed,
        "absent" => FreezeReply::Absent,
        "stale" => FreezeReply::Stale { fence: words.parse()? },
        "lapsed" => FreezeReply::Lapsed,
        _ => return Err(words.malformed()),
    })
}
