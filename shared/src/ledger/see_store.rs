//! Notes that the store is still there.

use super::{Ledger, LedgerError};
use crate::domain::StoreId;

/// Whether the store that was seen is the one that may sell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeeOutcome {
    Seen,
    /// The ledger names another one, or none; nothing was written.
    NotBound,
}

impl Ledger {
    /// Notes that this store has been seen right now.
    pub async fn see_store(&self, store: StoreId) -> Result<SeeOutcome, LedgerError> {
        let seen = sqlx::query(
            "UPDATE environment SET store_seen_at = clock_timestamp() WHERE store_id = $1",
        )
        .bind(store.as_uuid())
        .execute(&self.pool)
        .await
        .map_err(self.failed("note that the store was seen"))?;
        Ok(if seen.rows_affected() == 1 { SeeOutcome::Seen } else { SeeOutcome::NotBound })
    }
}
