//! Changes into how many buckets an item is divided, while it is on sale.
//!
//! The item stands still until nothing is held, its next epoch is built from the ledger under the new
//! layout, and then it sells again. Whoever still asks an old bucket is told the new layout. Killed
//! half-way, the old layout sells again when the freeze has lapsed, until a reconciler has built what
//! was begun.

use std::time::{Duration, Instant};

use shared::config::limits::{CORRECTION_LEASE, HOLDS_SETTLED_WAIT};
use shared::crash;
use shared::domain::{BucketCount, ItemId, Readiness};
use shared::ledger::Ledger;
use shared::stock::{ItemLock, Stock};

use crate::build::write;
use crate::locked::lock_item;
use crate::standstill::Standstill;
use crate::warm::{WarmError, Warmed, look};

/// How a change of the layout ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebucketed {
    pub from: BucketCount,
    pub to: BucketCount,
    /// Under which the item sells now.
    pub epoch: u64,
    pub available: u64,
    /// For how long nobody could buy; nothing when the layout was so already.
    pub paused: Duration,
}

/// How it ended badly. The item sells as before, or will as soon as a reconciler has looked after it.
#[derive(Debug, thiserror::Error)]
pub enum RebucketError {
    #[error(
        "{item} does not sell from Redis right now ({readiness:?}); `lastunit warm {item}` brings it there, and `lastunit item put {item} --buckets` sets the number before the first warm-up"
    )]
    NotLive { item: ItemId, readiness: Readiness },
    #[error(
        "unsettled holds of {item} after {} s: {held}, so it sells on as before: let consumers catch up, replay or discard its dead letters (`lastunit dlq list --item {item}`), then run this again",
        HOLDS_SETTLED_WAIT.as_secs()
    )]
    StillHeld { item: ItemId, held: u64 },
    #[error(transparent)]
    Warm(#[from] WarmError),
}

/// Divides an item's stock into so many buckets.
pub async fn rebucket(
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    buckets: BucketCount,
) -> Result<Rebucketed, RebucketError> {
    let lock = lock_item(stock, ledger, item, "rebucket", CORRECTION_LEASE).await;
    let lock = lock.map_err(WarmError::from)?;
    let done = under_lock(ledger, stock, &lock, buckets).await;
    lock.release().await;
    done
}

async fn under_lock(
    ledger: &Ledger,
    stock: &Stock,
    lock: &ItemLock,
    to: BucketCount,
) -> Result<Rebucketed, RebucketError> {
    let item = lock.item();
    let seen = look(ledger, stock, item).await?;
    let readiness = seen.readiness();
    if readiness != Readiness::Live {
        return Err(RebucketError::NotLive { item: item.clone(), readiness });
    }
    let from = seen.item.buckets;
    if from == to {
        let (epoch, available) = (seen.item.epoch, seen.available());
        return Ok(Rebucketed { from, to, epoch, available, paused: Duration::ZERO });
    }
    let began = Instant::now();
    let standstill = Standstill::begin(stock, lock, seen.open_buckets()).await;
    let standstill = standstill.map_err(WarmError::from)?;
    crash::point("rebucket.frozen");
    match standstill.until_settled(HOLDS_SETTLED_WAIT).await {
        Ok(0) => {}
        Ok(held) => {
            standstill.end().await;
            return Err(RebucketError::StillHeld { item: item.clone(), held });
        }
        Err(error) => {
            standstill.end().await;
            return Err(WarmError::from(error).into());
        }
    }
    crash::point("rebucket.settled");
    match write(ledger, stock, lock, &seen, &standstill, Some(to)).await? {
        Warmed::Built { epoch, available, .. } => {
            let paused = began.elapsed();
            tracing::info!(%item, %from, %to, epoch, ?paused, "divided into another number of buckets");
            Ok(Rebucketed { from, to, epoch, available, paused })
        }
        other => unreachable!("writing an epoch ends in {other:?}"),
    }
}
