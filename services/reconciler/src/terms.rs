//! Tells Redis what has changed in the terms of a sale.

use shared::config::limits::BUCKETS_PER_ITEM;
use shared::ledger::Item;
use shared::stock::{Bucket, Stock, StockError, TermsReply};

use crate::build::terms;

/// Tells every bucket of an item its terms. False when some bucket is not in Redis: its warm-up
/// brings them.
pub async fn tell_terms(stock: &Stock, item: &Item) -> Result<bool, StockError> {
    let mut told = true;
    for bucket in Bucket::all(&item.sale.item, BUCKETS_PER_ITEM) {
        match stock.tell_terms(&bucket, &terms(item)).await? {
            TermsReply::Told | TermsReply::Newer { .. } => {}
            TermsReply::Absent => told = false,
        }
    }
    Ok(told)
}
