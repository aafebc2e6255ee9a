//! Warm-up: makes an item sell from Redis, by what the ledger says.

use shared::config::limits::LOCK_LEASE;
use shared::domain::{BucketCount, BucketState, ItemId, Readiness, readiness};
use shared::ledger::{Item, Ledger, LedgerError};
use shared::stock::{Bucket, ItemLock, LockLost, Snapshot, Stock, StockError, WarmReply};

use crate::build::build;
use crate::compare::CompareError;
use crate::correct::CorrectError;
use crate::locked::{LockItemError, lock_item};
use crate::recover::recover;
use crate::standstill::StandstillError;

/// How a warm-up ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmed {
    /// Redis sells the item from now on, within its window.
    Built { epoch: u64, available: u64, orders: u64 },
    /// It was complete, and only had to be opened.
    Opened { epoch: u64, available: u64 },
    /// Redis had restarted or failed over; it was compared with the ledger and sells again.
    Recovered { epoch: u64, corrected: i64 },
    /// It sold already, and was left alone.
    Live { epoch: u64, available: u64 },
}

/// How a warm-up ended badly. Running it again is always safe.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    #[error("there is no item {0}; `lastunit item put {0}` creates it")]
    UnknownItem(ItemId),
    #[error("another warm-up of {item} (epoch {epoch}) is at work; run this one again later")]
    Overtaken { item: ItemId, epoch: u64 },
    #[error("a later holder of the lock of {0} is at work; run this again later")]
    Outpaced(ItemId),
    #[error("Redis restarted while {0} was being warmed up; run this again")]
    Restarted(ItemId),
    #[error(
        "Redis knows epoch {epoch} of {item}, the ledger does not: the ledger has gone back in time; `lastunit reconcile {item} --plan` shows what it lacks"
    )]
    LedgerBehind { item: ItemId, epoch: u64 },
    #[error(transparent)]
    Lock(#[from] LockItemError),
    #[error(transparent)]
    Lost(#[from] LockLost),
    #[error(transparent)]
    Standstill(#[from] StandstillError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Correct(#[from] CorrectError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Warms an item up. A live item is left as it is.
///
/// Killed half-way, it leaves buckets that do not sell; the next run opens them if all are complete,
/// or builds them anew under a higher epoch. Whoever may have lost an item with orders on their way
/// waits until they are decided before calling this: see [`Drain`](shared::domain::Drain).
pub async fn warm(ledger: &Ledger, stock: &Stock, item: &ItemId) -> Result<Warmed, WarmError> {
    // Most items of a run are live: no lock for them.
    let seen = look(ledger, stock, item).await?;
    if let Some(live) = seen.live() {
        return Ok(live);
    }
    let lock = lock_item(stock, ledger, item, "warm-up", LOCK_LEASE).await?;
    let warmed = under_lock(ledger, stock, item, &lock).await;
    lock.release().await;
    warmed
}

/// An item, as both sides have it.
pub(crate) struct Seen {
    pub(crate) item: Item,
    /// One for each bucket that it has or has ever had.
    pub(crate) buckets: Vec<Option<Snapshot>>,
}

pub(crate) async fn look(ledger: &Ledger, stock: &Stock, item: &ItemId) -> Result<Seen, WarmError> {
    let row = ledger.find_item(item).await?;
    let row = row.ok_or_else(|| WarmError::UnknownItem(item.clone()))?;
    let buckets = stock.snapshots(item, row.most_buckets).await?;
    Ok(Seen { item: row, buckets })
}

impl Seen {
    pub(crate) fn readiness(&self) -> Readiness {
        let standings: Vec<_> =
            self.buckets.iter().map(|bucket| bucket.as_ref().map(Snapshot::standing)).collect();
        readiness(self.item.epoch, self.item.buckets, &standings)
    }

    pub(crate) fn available(&self) -> u64 {
        self.buckets.iter().flatten().map(|bucket| bucket.available).sum()
    }

    /// Buckets that sell, whatever their epoch.
    pub(crate) fn open_buckets(&self) -> Vec<Bucket> {
        let is_open = |bucket: &Snapshot| bucket.state == BucketState::Open;
        let all = Bucket::all(&self.item.sale.item, BucketCount::MOST).zip(&self.buckets);
        let open = all.filter(|(_, seen)| seen.as_ref().is_some_and(is_open));
        open.map(|(bucket, _)| bucket).collect()
    }

    fn live(&self) -> Option<Warmed> {
        let live = Warmed::Live { epoch: self.item.epoch, available: self.available() };
        (self.readiness() == Readiness::Live).then_some(live)
    }
}

async fn under_lock(
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    lock: &ItemLock,
) -> Result<Warmed, WarmError> {
    let seen = look(ledger, stock, item).await?;
    let (epoch, available) = (seen.item.epoch, seen.available());
    let warmed = match seen.readiness() {
        Readiness::Live => return Ok(Warmed::Live { epoch, available }),
        Readiness::Built => {
            open(stock, &seen.item).await?;
            Warmed::Opened { epoch, available }
        }
        Readiness::Uncompared => {
            Warmed::Recovered { epoch, corrected: recover(ledger, stock, lock, &seen).await? }
        }
        Readiness::Outdated | Readiness::Cold { .. } => build(ledger, stock, lock, &seen).await?,
        Readiness::LedgerBehind { epoch, .. } => {
            return Err(WarmError::LedgerBehind { item: item.clone(), epoch });
        }
    };
    tracing::info!(%item, ?warmed, "warmed up");
    Ok(warmed)
}

/// Puts complete buckets on sale.
pub(crate) async fn open(stock: &Stock, item: &Item) -> Result<(), WarmError> {
    for bucket in Bucket::all(&item.sale.item, item.buckets) {
        still_ours(&bucket.item, stock.open(&bucket, item.epoch).await?)?;
    }
    Ok(())
}

pub(crate) fn still_ours(item: &ItemId, reply: WarmReply) -> Result<(), WarmError> {
    match reply {
        WarmReply::Done => Ok(()),
        WarmReply::Incomplete => Err(WarmError::Restarted(item.clone())),
        WarmReply::Stale { .. } => Err(WarmError::Outpaced(item.clone())),
        WarmReply::Live { epoch } | WarmReply::Moved { epoch } => {
            Err(WarmError::Overtaken { item: item.clone(), epoch })
        }
    }
}
