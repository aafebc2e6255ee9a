//! `snapshot.lua`: reads the numbers of one bucket at one instant.

use std::time::Duration;

use futures_util::future::try_join_all;
use uuid::Uuid;

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::domain::{BucketCount, BucketStanding, BucketState, ItemId, UnixMillis};

/// A bucket at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub epoch: u64,
    pub buckets: BucketCount,
    pub state: BucketState,
    /// The server that was asked.
    pub incarnation: Incarnation,
    /// The server on which the bucket was last made to agree with the ledger.
    pub stamped: Incarnation,
    /// Of the ledger row whose terms it sells by.
    pub version: u64,
    /// The highest fencing number that it has seen.
    pub fence: u64,
    pub available: u64,
    /// Units that became final since the warm-up, and those that were final before it.
    pub confirmed_units: u64,
    /// Units that went back since the warm-up.
    pub restored_units: u64,
    /// Holds that are not settled.
    pub held: u64,
    /// Orders that were confirmed without a hold since the last comparison.
    pub unseen: u64,
    /// Units that are on their way to other buckets.
    pub moving: u64,
    /// How often units came from other buckets, or came back: when it has not changed, none did.
    pub transfers: u64,
    /// For how long nothing can be reserved.
    pub frozen: Duration,
    /// The pause that an operator has ordered.
    pub pause: Option<Uuid>,
    /// When this was, by the clock of Redis.
    pub at: UnixMillis,
}

/// Which server keeps a bucket: its replication id, which changes when it restarts or is promoted,
/// and may then have forgotten what it answered before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation(pub(super) String);

impl Snapshot {
    /// How the bucket stands.
    pub fn standing(&self) -> BucketStanding {
        BucketStanding {
            epoch: self.epoch,
            buckets: self.buckets,
            state: self.state,
            is_stamped: self.stamped == self.incarnation,
            held: self.held,
            unseen: self.unseen,
            is_moving: self.moving > 0,
        }
    }
}

impl Stock {
    /// Reads every bucket of an item under the layout that Redis has, and at least so many.
    pub async fn snapshots(
        &self,
        item: &ItemId,
        at_least: BucketCount,
    ) -> Result<Vec<Option<Snapshot>>, StockError> {
        let bucket = |number| Bucket { item: item.clone(), number };
        let first = self.snapshot(&bucket(0)).await?;
        let count = first.as_ref().map_or(at_least, |first| first.buckets.max(at_least));
        let rest = (1..count.get()).map(async |number| self.snapshot(&bucket(number)).await);
        let rest = try_join_all(rest).await?;
        Ok([first].into_iter().chain(rest).collect())
    }

    /// Into how many buckets Redis has an item divided; `None` when it is not there.
    pub async fn bucket_count(&self, item: &ItemId) -> Result<Option<BucketCount>, StockError> {
        let first = self.snapshot(&Bucket { item: item.clone(), number: 0 }).await?;
        Ok(first.map(|first| first.buckets))
    }

    /// Reads a bucket; `None` when the item is not in this Redis.
    pub async fn snapshot(&self, bucket: &Bucket) -> Result<Option<Snapshot>, StockError> {
        let call = self
            .scripts
            .snapshot
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.held(bucket))
            .key(self.keys.unseen(bucket))
            .key(self.keys.moving(bucket));
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("snapshot", &reply);
        Ok(match words.word()? {
            "absent" => None,
            "present" => Some(Snapshot {
                epoch: words.parse()?,
                buckets: words.parse()?,
                state: words.parse()?,
                incarnation: Incarnation(words.word()?.to_owned()),
                stamped: Incarnation(words.word()?.to_owned()),
                version: words.parse()?,
                fence: words.parse()?,
                available: words.parse()?,
                confirmed_units: words.parse()?,
                restored_units: words.parse()?,
                held: words.parse()?,
                unseen: words.parse()?,
                moving: words.parse()?,
                transfers: words.parse()?,
                frozen: Duration::from_millis(words.parse()?),
                pause: words.optional()?,
                at: UnixMillis(words.parse()?),
            }),
            _ => return Err(words.malformed()),
        })
    }
}
