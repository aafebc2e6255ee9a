//! Lets an item leave Redis, long after its sale.

use shared::ledger::{Item, Ledger, LedgerError};
use shared::stock::{Bucket, ForgetLockReply, RetireReply, Stock, StockError};

/// Why an item did not leave. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RetireError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Removes the buckets of an item whose sale has been over for the retention, those of earlier layouts
/// too. One that still holds something stays.
pub(crate) async fn retire(ledger: &Ledger, stock: &Stock, row: &Item) -> Result<(), RetireError> {
    let item = &row.sale.item;
    for bucket in Bucket::all(item, row.most_buckets) {
        match stock.retire(&bucket).await? {
            RetireReply::Retired | RetireReply::Absent => {}
            RetireReply::Early => return Ok(()),
            RetireReply::Holding { held } => {
                tracing::debug!(%item, held, "an ended item stays in Redis until its holds are settled");
                return Ok(());
            }
        }
    }
    if stock.forget_lock(item).await? == ForgetLockReply::Busy {
        return Ok(());
    }
    if ledger.leave_redis(item).await? {
        tracing::info!(%item, "left Redis after its sale");
    }
    Ok(())
}
