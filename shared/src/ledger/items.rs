//! Items, as the ledger has them.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::rows::{unix_millis, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{BucketCount, ItemId, Sale, Window};

/// An item and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub sale: Sale,
    pub available: u64,
    /// Which warm-up built its Redis state; 0 before the first.
    pub epoch: u64,
    /// Into how many buckets its stock is divided under this epoch.
    pub buckets: BucketCount,
    /// The most buckets it has ever had: an older layout may have left some in Redis.
    pub most_buckets: BucketCount,
    pub version: u64,
    /// The pause that an operator has ordered.
    pub pause: Option<Pause>,
    /// When the terms last changed.
    pub changed_at: DateTime<Utc>,
}

/// An operator's order to stop selling until further notice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pause {
    pub pause_id: Uuid,
    pub reason: String,
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
    buckets: i16,
    most_buckets: i16,
    version: i64,
    pause_id: Option<Uuid>,
    pause_reason: Option<String>,
    changed_at: DateTime<Utc>,
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
            buckets: bucket_count(row.buckets)?,
            most_buckets: bucket_count(row.most_buckets)?,
            version: unsigned(row.version)?,
            pause: row
                .pause_id
                .zip(row.pause_reason)
                .map(|(pause_id, reason)| Pause { pause_id, reason }),
            changed_at: row.changed_at,
        })
    }
}

fn bucket_count(column: i16) -> Result<BucketCount, LedgerError> {
    let count = u16::try_from(column).map_err(LedgerError::corrupt)?;
    BucketCount::new(count).map_err(LedgerError::corrupt)
}

/// A number of buckets, as a column has it.
pub(super) fn bucket_column(buckets: BucketCount) -> i16 {
    i16::try_from(buckets.get()).expect("at most 64")
}

impl Item {
    /// Units that are sold.
    pub fn confirmed_units(&self) -> u64 {
        self.sale.total - self.available
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
