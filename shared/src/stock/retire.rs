//! `retire.lua`: removes a bucket whose sale has long been over.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::RECORD_RETENTION;

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
}
