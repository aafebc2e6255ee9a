//! `retire.lua`, `forget_lock.lua`: remove a bucket whose sale has long been over, and then the
//! lock of its item.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::RECORD_RETENTION;
use crate::domain::ItemId;

/// How the removal went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetireReply {
    /// It is gone; settled records go by themselves.
    Retired,
    /// It was not there.
    Absent,
    /// Its sale is not over for long enough.
    Early,
    /// So many holds are not settled.
    Holding { held: u64 },
}

/// How the removal of a lock went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgetLockReply {
    /// The next fence follows the highest that the ledger has.
    Forgotten,
    /// Somebody has the lock.
    Busy,
}

impl Stock {
    /// Removes a bucket that nobody needs any more.
    pub async fn retire(&self, bucket: &Bucket) -> Result<RetireReply, StockError> {
        let call = self
            .scripts
            .retire
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.buyers(bucket))
            .key(self.keys.held(bucket))
            .key(self.keys.unseen(bucket))
            .key(self.keys.moving(bucket))
            .arg(RECORD_RETENTION.as_millis());
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("retire", &reply);
        Ok(match words.word()? {
            "retired" => RetireReply::Retired,
            "absent" => RetireReply::Absent,
            "early" => RetireReply::Early,
            "holding" => RetireReply::Holding { held: words.parse()? },
            _ => return Err(words.malformed()),
        })
    }
    /// Removes what is left of the lock of an item that is in Redis no more.
    pub async fn forget_lock(&self, item: &ItemId) -> Result<ForgetLockReply, StockError> {
        let call =
            self.scripts.forget_lock.call().key(self.keys.lock(item)).key(self.keys.fence(item));
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("forget_lock", &reply);
        match words.word()? {
            "forgotten" => Ok(ForgetLockReply::Forgotten),
            "busy" => Ok(ForgetLockReply::Busy),
            _ => Err(words.malformed()),
        }
    }
}
