//! Freezes all buckets of an item for as long as work under its lock needs nobody to buy.

use std::time::{Duration, Instant};

use shared::domain::ItemId;
use shared::stock::{Bucket, Freeze, FreezeReply, ItemLock, LockLost, Stock, StockError};
use uuid::Uuid;

/// How soon holds that are not settled are counted again.
const POLL: Duration = Duration::from_millis(5);

/// A freeze of every bucket. It ends with [`end`](Self::end), or by itself with the lease.
pub(crate) struct Standstill<'a> {
    stock: &'a Stock,
    lock: &'a ItemLock,
    buckets: Vec<Bucket>,
    freeze: Freeze,
}

/// Why an item does not stand still any more. Doing the work again is always safe.
#[derive(Debug, thiserror::Error)]
pub enum StandstillError {
    #[error(transparent)]
    Lost(#[from] LockLost),
    #[error(
        "the freeze of {0} was over too soon: nothing was done under it; this is tried again, or run it again"
    )]
    Lapsed(ItemId),
    #[error("{0} is not in Redis, or not completely; `lastunit warm {0}` brings it there")]
    Absent(ItemId),
    #[error(transparent)]
    Stock(#[from] StockError),
}

impl<'a> Standstill<'a> {
    /// Freezes these buckets.
    pub(crate) async fn begin(
        stock: &'a Stock,
        lock: &'a ItemLock,
        buckets: Vec<Bucket>,
    ) -> Result<Self, StandstillError> {
        let freeze = Freeze { fence: lock.fence(), token: Uuid::new_v4() };
        let standstill = Self { stock, lock, buckets, freeze };
        standstill.renew().await?;
        Ok(standstill)
    }

    /// What corrections show to be made under this freeze.
    pub(crate) fn freeze(&self) -> Freeze {
        self.freeze
    }

    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Makes it last for another lease; one that has lapsed stays over.
    pub(crate) async fn renew(&self) -> Result<(), StandstillError> {
        let item = || self.lock.item().clone();
        for bucket in &self.buckets {
            self.lock.check()?;
            match self.stock.freeze(bucket, self.freeze, self.lock.lease()).await? {
                FreezeReply::Frozen | FreezeReply::Thawed => {}
                FreezeReply::Absent => return Err(StandstillError::Absent(item())),
                FreezeReply::Stale { .. } => return Err(self.lock.lost_to_another().into()),
                FreezeReply::Lapsed => return Err(StandstillError::Lapsed(item())),
            }
        }
        Ok(())
    }

    /// Waits until every hold is settled, but not for ever; says how many are not.
    pub(crate) async fn until_settled(&self, patience: Duration) -> Result<u64, StandstillError> {
        let began = Instant::now();
        loop {
            let mut held = 0;
            for bucket in &self.buckets {
                let seen = self.stock.snapshot(bucket).await?;
                held += seen.map_or(0, |seen| seen.held);
            }
            if held == 0 || began.elapsed() >= patience {
                return Ok(held);
            }
            tokio::time::sleep(POLL).await;
            self.renew().await?;
        }
    }

    /// Lets the item sell again.
    pub(crate) async fn end(self) {
        for bucket in &self.buckets {
            if let Err(error) = self.stock.thaw(bucket, self.freeze).await {
                tracing::warn!(item = %bucket.item, %error, "the freeze ends with its lease");
            }
        }
    }
}
