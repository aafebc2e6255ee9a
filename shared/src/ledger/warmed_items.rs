//! Items that Redis may hold stock of.

use chrono::{DateTime, Utc};

use super::rows::unix_millis;
use super::{Ledger, LedgerError};
use crate::domain::{ItemId, UnixMillis};

/// An item that has been warmed up at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmedItem {
    pub item: ItemId,
    /// When the newest reservation that has been decided was reserved.
    pub decided_until: UnixMillis,
}

impl Ledger {
    /// Every item that has been warmed up.
    pub async fn warmed_items(&self) -> Result<Vec<WarmedItem>, LedgerError> {
        let rows: Vec<(String, DateTime<Utc>)> = sqlx::query_as(
            "SELECT item_id, greatest(decided_until, 'epoch') FROM items WHERE epoch > 0",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("list warmed items"))?;
        rows.into_iter()
            .map(|(item, decided_until)| {
                let item = item.parse().map_err(LedgerError::corrupt)?;
                Ok(WarmedItem { item, decided_until: unix_millis(decided_until) })
            })
            .collect()
    }
}
