//! Buyers whose totals in Redis look wrong. Nothing is frozen meanwhile, so that a purchase on its
//! way may look like a difference: suspects are looked at again under a freeze.

use std::collections::{BTreeSet, HashMap};

use shared::config::limits::TOTALS_PAGE;
use shared::domain::{BucketCount, BuyerId, ItemId, total_differences, waiting_units};
use shared::ledger::Ledger;
use shared::stock::{Bucket, Stock};

use crate::compare::{CompareError, Compared, totals};

/// Goes through the buyers of both sides, page by page. Without a limit nobody asks for totals, and
/// Redis keeps none.
pub(crate) async fn suspects(
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    compared: &Compared,
) -> Result<Vec<BuyerId>, CompareError> {
    if !compared.ledger.is_limited {
        return Ok(Vec::new());
    }
    let waiting = waiting_units(&compared.stock, &compared.ledger);
    let mut suspects = BTreeSet::new();
    let mut note = |in_redis: &HashMap<_, _>, bought: &HashMap<_, _>| {
        let differences = total_differences(in_redis, bought, &waiting);
        suspects.extend(differences.into_iter().map(|(buyer, _)| buyer));
    };

    let count = compared.buckets.first().map_or(BucketCount::ONE, |bucket| bucket.buckets);
    for bucket in Bucket::all(item, count) {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let page = stock.scan_totals(&bucket, at).await?;
            let in_redis: HashMap<BuyerId, u64> = page.totals.into_iter().collect();
            let buyers: Vec<_> = in_redis.keys().cloned().collect();
            let side = ledger.compare(item, &[], &buyers).await?;
            let side = side.ok_or_else(|| CompareError::UnknownItem(item.clone()))?;
            note(&in_redis, &side.totals);
            cursor = page.next;
        }
    }

    let mut after: Option<BuyerId> = None;
    loop {
        let page = ledger.list_totals(item, after.as_ref(), TOTALS_PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        let buyers: Vec<_> = page.iter().map(|(buyer, _)| buyer.clone()).collect();
        let mut in_redis = HashMap::new();
        for bucket in Bucket::all(item, count) {
            in_redis.extend(totals(stock, &bucket, count, &buyers).await?);
        }
        note(&in_redis, &page.into_iter().collect());
    }
    Ok(suspects.into_iter().collect())
}
