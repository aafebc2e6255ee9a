//! `snapshot.lua`: reads one bucket of an item at one instant.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};

/// A bucket at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    pub epoch: u64,
    pub buckets: u16,
    /// False while a warm-up is still building it.
    pub open: bool,
    pub available: u64,
    pub confirmed_units: u64,
    /// Holds that are not settled.
    pub held: u64,
}

impl Stock {
    /// Reads a bucket; `None` when the item is not in this Redis.
    pub async fn snapshot(&self, bucket: &Bucket) -> Result<Option<Snapshot>, StockError> {
        let call =
            self.scripts.snapshot.call().key(self.keys.sale(bucket)).key(self.keys.held(bucket));
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("snapshot", &reply);
        Ok(match words.word()? {
            "absent" => None,
            "present" => Some(Snapshot {
                epoch: words.parse()?,
                buckets: words.parse()?,
                open: words.word()? == "open",
                available: words.parse()?,
                confirmed_units: words.parse()?,
                held: words.parse()?,
            }),
            _ => return Err(words.malformed()),
        })
    }
}
