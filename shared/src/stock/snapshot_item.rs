//! Adds the buckets of an item up.

use std::time::Duration;

use uuid::Uuid;

use super::snapshot::Snapshot;
use super::{Stock, StockError};
use crate::domain::{BucketCount, BucketStanding, ItemId, UnixMillis};

/// All buckets of an item together. They are read one after the other: while it sells, units that move
/// meanwhile may be counted twice or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemSnapshot {
    pub epoch: u64,
    pub buckets: BucketCount,
    /// The highest fencing number that any bucket has seen.
    pub fence: u64,
    pub available: u64,
    /// Units on their way from one bucket to another.
    pub moving: u64,
    /// Units that became final since the warm-up, and those that were final before it.
    pub confirmed_units: u64,
    /// Units that went back since the warm-up.
    pub restored_units: u64,
    /// Holds that are not settled.
    pub held: u64,
    /// Orders that were confirmed without a hold since the last comparison.
    pub unseen: u64,
    /// For how long nothing can be reserved in some bucket.
    pub frozen: Duration,
    /// The pause that an operator has ordered.
    pub pause: Option<Uuid>,
    /// When this was, by the clock of Redis.
    pub at: UnixMillis,
    /// How each bucket stands.
    pub standings: Vec<BucketStanding>,
}

impl ItemSnapshot {
    /// Adds up all buckets of one layout; `None` when there are none.
    pub fn of(buckets: &[Snapshot]) -> Option<Self> {
        let first = buckets.first()?;
        let sum = |number: fn(&Snapshot) -> u64| buckets.iter().map(number).sum();
        Some(Self {
            epoch: buckets.iter().map(|bucket| bucket.epoch).max()?,
            buckets: first.buckets,
            fence: buckets.iter().map(|bucket| bucket.fence).max()?,
            available: sum(|bucket| bucket.available),
            moving: sum(|bucket| bucket.moving),
            confirmed_units: sum(|bucket| bucket.confirmed_units),
            restored_units: sum(|bucket| bucket.restored_units),
            held: sum(|bucket| bucket.held),
            unseen: sum(|bucket| bucket.unseen),
            frozen: buckets.iter().map(|bucket| bucket.frozen).max()?,
            pause: first.pause,
            at: buckets.iter().map(|bucket| bucket.at).min()?,
            standings: buckets.iter().map(Snapshot::standing).collect(),
        })
    }
}

impl Stock {
    /// Reads an item under the layout that Redis has; `None` when it is not there, or not completely.
    pub async fn snapshot_item(&self, item: &ItemId) -> Result<Option<ItemSnapshot>, StockError> {
        let seen = self.snapshots(item, BucketCount::ONE).await?;
        let seen: Option<Vec<_>> = seen.into_iter().collect();
        Ok(seen.as_deref().and_then(ItemSnapshot::of))
    }
}
