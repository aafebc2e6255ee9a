//! Items, as the ledger has them.

use chrono::{DateTime, Utc};
use sqlx::FromRow;

use super::rows::{unix_millis, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{ItemId, Sale, Window};

/// An item and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub sale: Sale,
    pub available: u64,
    /// Which warm-up built its Redis state; 0 before the first.
    pub epoch: u64,
    pub version: u64,
}

#[derive(FromRow)]
pub(super) struct ItemRow {
    item_id: String,
    total: i64,
    available: i64,
    limit_per_buyer: Option<i64>,
    opens_at: DateTime<Utc>,
    closes_at: DateTime<Utc>,
    epoch: i64,
    version: i64,
}

impl TryFrom<ItemRow> for Item {
    type Error = LedgerError;

    fn try_from(row: ItemRow) -> Result<Self, LedgerError> {
        let item = row.item_id.parse().map_err(LedgerError::corrupt)?;
        let window = Window::new(unix_millis(row.opens_at), unix_millis(row.closes_at))
            .map_err(LedgerError::corrupt)?;
        let limit = row.limit_per_buyer.map(unsigned).transpose()?;
        Ok(Self {
            sale: Sale::new(item, unsigned(row.total)?, limit, window)
                .map_err(LedgerError::corrupt)?,
            available: unsigned(row.available)?,
            epoch: unsigned(row.epoch)?,
            version: unsigned(row.version)?,
        })
    }
}

impl Ledger {
    /// One item, if it exists.
    pub async fn find_item(&self, item: &ItemId) -> Result<Option<Item>, LedgerError> {
        let row: Option<ItemRow> = sqlx::query_as("SELECT * FROM items WHERE item_id = $1")
            .bind(item.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(self.failed("read an item"))?;
        row.map(Item::try_from).transpose()
    }

    /// Up to `most` items after `after`, in the order of their ids.
    pub async fn list_items(
        &self,
        after: Option<&ItemId>,
        most: u32,
    ) -> Result<Vec<Item>, LedgerError> {
        let rows: Vec<ItemRow> =
            sqlx::query_as("SELECT * FROM items WHERE item_id > $1 ORDER BY item_id LIMIT $2")
                .bind(after.map_or("", ItemId::as_str))
                .bind(i64::from(most))
                .fetch_all(&self.pool)
                .await
                .map_err(self.failed("list items"))?;
        rows.into_iter().map(Item::try_from).collect()
    }
}
