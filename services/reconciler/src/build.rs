//! Builds all buckets of an item from the ledger, under the next epoch.

use std::collections::HashMap;

use shared::config::limits::{BUCKETS_PER_ITEM, SETTLE_BATCH};
use shared::crash;
use shared::domain::BucketState;
use shared::ledger::{Item, Ledger, WarmOrder};
use shared::stock::{
    Bucket, BucketPlan, ForgetReply, Freeze, FreezeReply, ItemLock, OrderRecord, Stock, Terms,
    WarmReply,
};
use uuid::Uuid;

use crate::warm::{Seen, WarmError, Warmed, open, still_ours};

/// Builds and opens an item. The holder of a lock that was lost writes nothing more: its fencing
/// number is refused, and its epoch is not the item's any more.
pub(crate) async fn build(
    ledger: &Ledger,
    stock: &Stock,
    lock: &ItemLock,
    seen: &Seen,
) -> Result<Warmed, WarmError> {
    let item = lock.item();
    let overtaken = || WarmError::Overtaken { item: item.clone(), epoch: seen.item.epoch };
    freeze_open(stock, lock, seen).await?;
    let in_redis = seen.buckets.iter().flatten().map(|bucket| bucket.epoch).max().unwrap_or(0);
    let epoch = ledger.begin_warm(item, lock.fence(), in_redis).await?.ok_or_else(overtaken)?;
    crash::point("warm.begun");
    let mut reading = ledger.read_for_warm(item).await?.ok_or_else(overtaken)?;
    if reading.item.epoch != epoch {
        return Err(overtaken());
    }
    let mut available = reading.item.available;
    for bucket in Bucket::all(item, BUCKETS_PER_ITEM) {
        lock.check()?;
        forget_holds(stock, &bucket, epoch, lock.fence()).await?;
        let plan = plan(&reading.item, std::mem::take(&mut available));
        still_ours(item, stock.warm(&bucket, &plan, lock.fence()).await?)?;
    }
    crash::point("warm.building");
    let mut orders = 0;
    loop {
        lock.check()?;
        let page = ledger.next_orders(&mut reading, SETTLE_BATCH).await?;
        if page.is_empty() {
            break;
        }
        orders += page.len() as u64;
        let mut by_bucket: HashMap<Bucket, Vec<OrderRecord>> = HashMap::new();
        for warm_order in &page {
            let bucket = Bucket::home(item, &warm_order.order.buyer, BUCKETS_PER_ITEM);
            by_bucket.entry(bucket).or_default().push(record(warm_order));
        }
        for (bucket, records) in by_bucket {
            still_ours(item, stock.warm_page(&bucket, epoch, &records, false).await?)?;
        }
    }
    for bucket in Bucket::all(item, BUCKETS_PER_ITEM) {
        still_ours(item, stock.warm_page(&bucket, epoch, &[], true).await?)?;
    }
    crash::point("warm.built");
    open(stock, item, epoch).await?;
    Ok(Warmed::Built { epoch, available: reading.item.available, orders })
}

/// A bucket that is open under an epoch that the ledger has left behind still sells: it stops before
/// the ledger is read.
async fn freeze_open(stock: &Stock, lock: &ItemLock, seen: &Seen) -> Result<(), WarmError> {
    let freeze = Freeze { fence: lock.fence(), token: Uuid::new_v4() };
    for (bucket, seen) in Bucket::all(lock.item(), BUCKETS_PER_ITEM).zip(&seen.buckets) {
        let is_open = seen.as_ref().is_some_and(|seen| seen.state == BucketState::Open);
        if is_open && stock.freeze(&bucket, freeze, lock.lease()).await? != FreezeReply::Frozen {
            return Err(WarmError::Outpaced(lock.item().clone()));
        }
    }
    Ok(())
}

/// Holds of a lower epoch are unknown from now on: their stock goes with the bucket. Should they be
/// sold after all, the ledger says so.
async fn forget_holds(
    stock: &Stock,
    bucket: &Bucket,
    epoch: u64,
    fence: u64,
) -> Result<(), WarmError> {
    loop {
        match stock.forget_holds(bucket, epoch, fence).await? {
            ForgetReply::Forgotten { left: 0 } => return Ok(()),
            ForgetReply::Forgotten { .. } => {}
            ForgetReply::Live { epoch } => {
                return still_ours(&bucket.item, WarmReply::Live { epoch });
            }
        }
    }
}

fn plan(item: &Item, available: u64) -> BucketPlan {
    BucketPlan {
        epoch: item.epoch,
        buckets: BUCKETS_PER_ITEM,
        available,
        confirmed_units: item.confirmed_units(),
        terms: terms(item),
    }
}

/// The terms of an item, as Redis is told them.
pub(crate) fn terms(item: &Item) -> Terms {
    Terms {
        version: item.version,
        window: item.sale.window,
        limit_per_buyer: item.sale.limit_per_buyer,
        pause: item.pause.as_ref().map(|pause| pause.pause_id),
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
