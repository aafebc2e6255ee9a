//! Builds all buckets of an item from the ledger, under the next epoch.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use shared::config::limits::{HOLDS_SETTLED_WAIT, SETTLE_BATCH, WARM_PAGE};
use shared::crash;
use shared::domain::{BucketCount, divide};
use shared::ledger::{Item, Ledger, WarmOrder};
use shared::stock::{
    Bucket, BucketPlan, ForgetReply, ItemLock, OrderRecord, Stock, Terms, WarmReply,
};

use crate::standstill::Standstill;
use crate::warm::{Seen, WarmError, Warmed, open, still_ours};

/// Buckets that are written side by side: Redis has the next call while it answers the last.
const WRITES_AT_ONCE: usize = 4;

/// Builds and opens an item. Buckets that are open under an epoch that the ledger has left behind
/// still sell: they stop first, and what they hold is given a moment to be settled.
pub(crate) async fn build(
    ledger: &Ledger,
    stock: &Stock,
    lock: &ItemLock,
    seen: &Seen,
) -> Result<Warmed, WarmError> {
    let standstill = Standstill::begin(stock, lock, seen.open_buckets()).await?;
    let held = standstill.until_settled(HOLDS_SETTLED_WAIT).await?;
    if held > 0 {
        tracing::warn!(item = %lock.item(), held, "built anew with holds that are not settled; the ledger decides them");
    }
    write(ledger, stock, lock, seen, &standstill, None).await
}

/// Writes the next epoch, under the item's number of buckets or another one, and puts it on sale. The
/// holder of a lock that was lost writes nothing more: its fencing number is refused, and its epoch is
/// not the item's any more.
pub(crate) async fn write(
    ledger: &Ledger,
    stock: &Stock,
    lock: &ItemLock,
    seen: &Seen,
    standstill: &Standstill<'_>,
    buckets: Option<BucketCount>,
) -> Result<Warmed, WarmError> {
    let item = lock.item();
    let overtaken = || WarmError::Overtaken { item: item.clone(), epoch: seen.item.epoch };
    let in_redis = seen.buckets.iter().flatten().map(|bucket| bucket.epoch).max().unwrap_or(0);
    let begun = ledger.begin_warm(item, lock.fence(), in_redis, buckets).await?;
    let epoch = begun.ok_or_else(overtaken)?;
    crash::point("warm.begun");
    let mut reading = ledger.read_for_warm(item).await?.ok_or_else(overtaken)?;
    if reading.item.epoch != epoch {
        return Err(overtaken());
    }
    standstill.renew().await?;
    let row = reading.item.clone();
    // The first bucket last: until then it tells the old layout, and thereby which buckets still have
    // to be told the new one.
    for bucket in Bucket::all(item, row.most_buckets).collect::<Vec<_>>().into_iter().rev() {
        lock.check()?;
        forget_holds(stock, &bucket, epoch, lock.fence()).await?;
        still_ours(item, stock.warm(&bucket, &plan(&row, &bucket), lock.fence()).await?)?;
        crash::point("warm.bucket");
    }
    crash::point("warm.building");
    let mut orders = 0;
    let mut page = ledger.next_orders(&mut reading, WARM_PAGE).await?;
    while !page.is_empty() {
        lock.check()?;
        orders += page.len() as u64;
        // While Redis is told of one page, the ledger reads the next: buyers may be waiting.
        let written = write_page(stock, &row, &page);
        let (written, next) = tokio::join!(written, ledger.next_orders(&mut reading, WARM_PAGE));
        written?;
        page = next?;
    }
    for bucket in Bucket::all(item, row.buckets) {
        still_ours(item, stock.warm_page(&bucket, epoch, &[], true).await?)?;
    }
    crash::point("warm.built");
    open(stock, &row).await?;
    Ok(Warmed::Built { epoch, available: row.available, orders })
}

async fn write_page(stock: &Stock, row: &Item, page: &[WarmOrder]) -> Result<(), WarmError> {
    let item = &row.sale.item;
    let mut by_bucket: HashMap<Bucket, Vec<OrderRecord>> = HashMap::new();
    for warm_order in page {
        let bucket = Bucket::home(item, &warm_order.order.buyer, row.buckets);
        by_bucket.entry(bucket).or_default().push(record(warm_order));
    }
    let writing = by_bucket.into_iter().map(|(bucket, records)| async move {
        for part in records.chunks(SETTLE_BATCH) {
            still_ours(item, stock.warm_page(&bucket, row.epoch, part, false).await?)?;
        }
        Ok(())
    });
    stream::iter(writing).buffer_unordered(WRITES_AT_ONCE).try_collect().await
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

/// Stock is divided evenly; what was confirmed is counted in the first bucket, for all of them.
fn plan(item: &Item, bucket: &Bucket) -> BucketPlan {
    let number = usize::from(bucket.number);
    BucketPlan {
        epoch: item.epoch,
        buckets: item.buckets,
        available: divide(item.available, item.buckets).get(number).copied().unwrap_or(0),
        confirmed_units: if number == 0 { item.confirmed_units() } else { 0 },
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
