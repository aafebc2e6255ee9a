//! The law of the items that a run touches. It is asked while things are moving, so Redis is heard
//! only where nothing is held.

use shared::domain::{BucketCount, ItemId, Violation, broken_laws};
use shared::ledger::Ledger;
use shared::stock::Stock;

use super::LettersError;

/// The first sentence of the law that one of these items breaks in the ledger.
pub(super) async fn broken(
    ledger: &Ledger,
    items: &[ItemId],
) -> Result<Option<(ItemId, Violation)>, LettersError> {
    for (item, books) in ledger.sold_books(items).await? {
        if let Some(violation) = broken_laws(&books).into_iter().next() {
            return Ok(Some((item, violation)));
        }
    }
    Ok(None)
}

/// The same once a run is over: where nothing is held any more, Redis must agree as well.
pub(super) async fn broken_at_rest(
    ledger: &Ledger,
    stock: &Stock,
    items: &[ItemId],
) -> Result<Option<(ItemId, Violation)>, LettersError> {
    for item in items {
        let before = at_rest(stock, item).await?;
        let Some((item, mut books)) = ledger.sold_books(std::slice::from_ref(item)).await?.pop()
        else {
            continue;
        };
        // Somebody who buys in between makes the two differ, and nothing is wrong.
        if let Some(available) = before
            && at_rest(stock, &item).await? == before
        {
            books.redis_available = Some(available);
        }
        if let Some(violation) = broken_laws(&books).into_iter().next() {
            return Ok(Some((item, violation)));
        }
    }
    Ok(None)
}

/// What Redis sells of an item of which nothing is held.
async fn at_rest(stock: &Stock, item: &ItemId) -> Result<Option<u64>, LettersError> {
    let mut available = 0;
    for bucket in stock.snapshots(item, BucketCount::ONE).await? {
        match bucket {
            Some(bucket) if bucket.held == 0 && bucket.moving == 0 => available += bucket.available,
            _ => return Ok(None),
        }
    }
    Ok(Some(available))
}
