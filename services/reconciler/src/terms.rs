//! Tells Redis what has changed in the terms of a sale.

use shared::domain::ItemId;
use shared::ledger::{Ledger, LedgerError};
use shared::stock::{Bucket, Stock, StockError, TermsReply};

use crate::build::terms;

/// How often terms are told again because Redis seems to know later ones.
const TOLD_AT_MOST: usize = 3;

/// Why Redis was not told. The reconciler tells it, or the next run of the command.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    #[error("there is no item {0}; `lastunit item list` shows all")]
    UnknownItem(ItemId),
    #[error("the terms of {0} keep changing while Redis is told of them")]
    Unsteady(ItemId),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Tells every bucket of an item the terms that the ledger has now. False when some bucket is not in
/// Redis: its warm-up brings them.
pub async fn tell_terms(ledger: &Ledger, stock: &Stock, item: &ItemId) -> Result<bool, TermsError> {
    'reading: for _ in 0..TOLD_AT_MOST {
        let row = ledger.find_item(item).await?;
        let row = row.ok_or_else(|| TermsError::UnknownItem(item.clone()))?;
        let mut told = true;
        for bucket in Bucket::all(item, row.buckets) {
            match stock.tell_terms(&bucket, &terms(&row)).await? {
                TermsReply::Told => {}
                TermsReply::Absent => told = false,
                TermsReply::Newer { version } => {
                    // Somebody was quicker; or the ledger has gone back in time, and has to get
                    // ahead of what Redis remembers.
                    ledger.catch_up_version(item, version).await?;
                    continue 'reading;
                }
            }
        }
        return Ok(told);
    }
    Err(TermsError::Unsteady(item.clone()))
}
