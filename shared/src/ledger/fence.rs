//! Fences: which holder of an item's lock was the last to begin its work.

use super::rows::{signed, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::ItemId;

impl Ledger {
    /// The highest fence that has been claimed for an item; `None` when there is no such item.
    pub async fn fence(&self, item: &ItemId) -> Result<Option<u64>, LedgerError> {
        let fence: Option<i64> = sqlx::query_scalar("SELECT fence FROM items WHERE item_id = $1")
            .bind(item.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(self.failed("read the fence of an item"))?;
        fence.map(unsigned).transpose()
    }

    /// Claims a fence; false when it is not higher than every one before, or there is no such item.
    pub async fn claim_fence(&self, item: &ItemId, fence: u64) -> Result<bool, LedgerError> {
        let claimed = sqlx::query("UPDATE items SET fence = $1 WHERE item_id = $2 AND fence < $1")
            .bind(signed(fence))
            .bind(item.as_str())
            .execute(&self.pool)
            .await
            .map_err(self.failed("claim a fence of an item"))?;
        Ok(claimed.rows_affected() == 1)
    }
}
