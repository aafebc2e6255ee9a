//! Reads an item from Redis, then from the ledger, and compares.

use std::collections::HashMap;

use shared::crash;
use shared::domain::{
    BucketCount, BuyerId, Difference, ItemId, LedgerSide, StockSide, UnixMillis, difference,
    home_bucket,
};
use shared::ledger::{Ledger, LedgerError};
use shared::stock::{Bucket, Snapshot, Stock, StockError};

/// How often a reading is begun again because stock went back in the middle of it.
const READINGS: usize = 5;

/// Both sides of an item. Exact while the item is frozen; otherwise what is sold in between shows
/// up as a difference.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) stock: StockSide,
    pub(crate) ledger: LedgerSide,
    pub(crate) difference: Difference,
    /// Each bucket, at the end of the reading.
    pub(crate) buckets: Vec<Snapshot>,
}

/// Why an item could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error("{0} is not in Redis, or not completely; `lastunit warm {0}` brings it there")]
    NotLive(ItemId),
    #[error("there is no item {0}; `lastunit item list` shows all")]
    UnknownItem(ItemId),
    #[error(
        "more than {most} holds of {item} are not settled; it is compared once consumers have caught up"
    )]
    TooManyHolds { item: ItemId, most: usize },
    #[error("stock of {0} keeps going back while it is compared; it is compared again later")]
    Unsteady(ItemId),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

impl Compared {
    /// When Redis was read, by its own clock.
    pub(crate) fn at(&self) -> UnixMillis {
        self.buckets.iter().map(|bucket| bucket.at).min().unwrap_or(UnixMillis(0))
    }

    /// Orders that were confirmed without a hold since the last comparison.
    pub(crate) fn unseen(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.unseen).sum()
    }
}

/// Compares an item and the totals of these buyers. The ledger is read last: what was settled since
/// Redis was read has then moved both sides alike.
pub(crate) async fn compare(
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    buyers: &[BuyerId],
    most_holds: usize,
) -> Result<Compared, CompareError> {
    for _ in 0..READINGS {
        let read = read_stock(stock, item, buyers, most_holds).await;
        if matches!(read, Err(CompareError::NotLive(_))) && ledger.find_item(item).await?.is_none()
        {
            return Err(CompareError::UnknownItem(item.clone()));
        }
        let Some((side, buckets)) = read? else { continue };
        crash::point("compare.read");
        let holds: Vec<_> =
            side.holds.values().map(|hold| (hold.request_id, hold.reservation_id)).collect();
        let ledger = ledger.compare(item, &holds, buyers).await?;
        let ledger = ledger.ok_or_else(|| CompareError::UnknownItem(item.clone()))?;
        let difference = difference(&side, &ledger);
        return Ok(Compared { stock: side, ledger, difference, buckets });
    }
    Err(CompareError::Unsteady(item.clone()))
}

/// `None`: units went back in the middle, so that some were counted twice or not at all.
async fn read_stock(
    stock: &Stock,
    item: &ItemId,
    buyers: &[BuyerId],
    most_holds: usize,
) -> Result<Option<(StockSide, Vec<Snapshot>)>, CompareError> {
    let not_live = || CompareError::NotLive(item.clone());
    let (mut side, mut buckets) = (StockSide::default(), Vec::new());
    let count = stock.bucket_count(item).await?.ok_or_else(not_live)?;
    for bucket in Bucket::all(item, count) {
        let first = stock.read_holds(&bucket, 0).await?.ok_or_else(not_live)?;
        side.available += first.available;
        side.confirmed_units += first.confirmed_units;
        let (mut next, mut holds) = (first.next, first.holds);
        loop {
            side.holds.extend(holds.drain(..).map(|hold| (hold.reservation_id, hold)));
            if side.holds.len() > most_holds {
                return Err(CompareError::TooManyHolds { item: item.clone(), most: most_holds });
            }
            let Some(cursor) = next else { break };
            let page = stock.read_holds(&bucket, cursor).await?.ok_or_else(not_live)?;
            (next, holds) = (page.next, page.holds);
        }
        side.totals.extend(totals(stock, &bucket, count, buyers).await?);
        let last = stock.snapshot(&bucket).await?.ok_or_else(not_live)?;
        let is_steady = (last.epoch, last.restored_units) == (first.epoch, first.restored_units);
        if !is_steady || last.buckets != count {
            return Ok(None);
        }
        side.moving += last.moving;
        buckets.push(last);
    }
    Ok(Some((side, buckets)))
}

/// The totals of those buyers who are at home in this bucket.
pub(crate) async fn totals(
    stock: &Stock,
    bucket: &Bucket,
    buckets: BucketCount,
    buyers: &[BuyerId],
) -> Result<HashMap<BuyerId, u64>, StockError> {
    let at_home = |buyer: &&BuyerId| home_bucket(buyer, buckets) == bucket.number;
    let buyers: Vec<BuyerId> = buyers.iter().filter(at_home).cloned().collect();
    let totals = stock.read_totals(bucket, &buyers).await?;
    Ok(buyers.into_iter().zip(totals).collect())
}
