//! Warm-up: builds an item's Redis state from the ledger, then puts it on sale.

use shared::config::limits::{BUCKETS_PER_ITEM, SETTLE_BATCH};
use shared::domain::ItemId;
use shared::ledger::{Ledger, LedgerError, WarmOrder, WarmPlan};
use shared::stock::{Bucket, BucketPlan, OrderRecord, Stock, StockError, WarmReply};

/// How a warm-up ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmed {
    /// Redis sells the item from now on, within its window.
    Built { epoch: u64, available: u64, orders: u64 },
    /// It did already, and was left alone.
    Live { epoch: u64, available: u64 },
}

/// How a warm-up ended badly. Running it again is always safe.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    #[error("there is no item {0}; `lastunit item put {0}` creates it")]
    UnknownItem(ItemId),
    #[error("another warm-up of {item} (epoch {epoch}) is at work; run this one again later")]
    Overtaken { item: ItemId, epoch: u64 },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Warms an item up. A live item is left as it is.
///
/// Killed half-way, it leaves a bucket that does not sell; the next run builds it anew under a
/// higher epoch.
pub async fn warm(ledger: &Ledger, stock: &Stock, item: &ItemId) -> Result<Warmed, WarmError> {
    let bucket = Bucket { item: item.clone(), number: 0 };
    if let Some(live) = stock.snapshot(&bucket).await?.filter(|snapshot| snapshot.open) {
        return Ok(Warmed::Live { epoch: live.epoch, available: live.available });
    }
    let plan = ledger.begin_warm(item).await?;
    let plan = plan.ok_or_else(|| WarmError::UnknownItem(item.clone()))?;
    let epoch = plan.item.epoch;

    still_ours(item, stock.warm(&bucket, &bucket_plan(&plan)).await?)?;
    for page in plan.orders.chunks(SETTLE_BATCH) {
        let records: Vec<_> = page.iter().map(record).collect();
        still_ours(item, stock.warm_page(&bucket, epoch, &records).await?)?;
    }
    still_ours(item, stock.open(&bucket, epoch).await?)?;
    let (available, orders) = (plan.item.available, plan.orders.len() as u64);
    tracing::info!(%item, epoch, available, orders, "warmed up");
    Ok(Warmed::Built { epoch, available, orders })
}

fn still_ours(item: &ItemId, reply: WarmReply) -> Result<(), WarmError> {
    match reply {
        WarmReply::Done => Ok(()),
        WarmReply::Live { epoch } | WarmReply::Moved { epoch } => {
            Err(WarmError::Overtaken { item: item.clone(), epoch })
        }
    }
}

fn bucket_plan(plan: &WarmPlan) -> BucketPlan {
    BucketPlan {
        epoch: plan.item.epoch,
        buckets: BUCKETS_PER_ITEM,
        available: plan.item.available,
        confirmed_units: plan.confirmed_units,
        limit_per_buyer: plan.item.sale.limit_per_buyer,
        window: plan.item.sale.window,
        version: plan.item.version,
    }
}

fn record(WarmOrder { order, buyer_total }: &WarmOrder) -> OrderRecord {
    OrderRecord {
        request_id: order.request_id,
        reservation_id: order.reservation_id,
        buyer: order.buyer.clone(),
        quantity: order.quantity,
        verdict: order.verdict(),
        buyer_total: *buyer_total,
    }
}
