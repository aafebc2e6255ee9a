//! Items that Redis has, or should have.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::FromRow;

use super::items::{Item, ItemRow, bucket_column};
use super::rows::{signed, unix_millis};
use super::{Ledger, LedgerError};
use crate::config::limits::RECORD_RETENTION;
use crate::domain::{BucketCount, ItemId, UnixMillis};

/// An item that has been warmed up, or is due to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptItem {
    pub item: Item,
    /// When the newest reservation that has been decided was reserved.
    pub decided_until: UnixMillis,
    /// When a decision last changed what is left.
    pub decided_at: DateTime<Utc>,
    /// True once its sale has been over for the retention: it leaves Redis.
    pub is_over: bool,
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    item: ItemRow,
    decided_until_or_epoch: DateTime<Utc>,
    decided_at_or_epoch: DateTime<Utc>,
    is_over: bool,
}

impl Ledger {
    /// Items that were warmed up and have not left Redis, and those whose sale is open or opens
    /// within `warm_lead`.
    pub async fn kept_items(&self, warm_lead: Duration) -> Result<Vec<KeptItem>, LedgerError> {
        let seconds = |length: Duration| signed(length.as_secs());
        let rows: Vec<Row> = sqlx::query_as(include_str!("sql/kept_items.sql"))
            .bind(seconds(warm_lead))
            .bind(seconds(RECORD_RETENTION))
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("list the items that Redis has"))?;
        rows.into_iter()
            .map(|row| {
                Ok(KeptItem {
                    item: Item::try_from(row.item)?,
                    decided_until: unix_millis(row.decided_until_or_epoch),
                    decided_at: row.decided_at_or_epoch,
                    is_over: row.is_over,
                })
            })
            .collect()
    }

    /// Every item whose sale has not ended, in the order of their opening.
    pub async fn warmable_items(&self) -> Result<Vec<ItemId>, LedgerError> {
        let items: Vec<String> = sqlx::query_scalar(
            "SELECT item_id FROM items WHERE closes_at > now() ORDER BY opens_at, item_id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("list the items to warm up"))?;
        items.iter().map(|item| item.parse().map_err(LedgerError::corrupt)).collect()
    }

    /// Writes down that an item has left Redis. One whose sale was put anew meanwhile stays.
    pub async fn leave_redis(&self, item: &ItemId) -> Result<bool, LedgerError> {
        let left = sqlx::query(
            "UPDATE items SET left_redis_at = now()
             WHERE item_id = $1 AND closes_at <= now() - make_interval(secs => $2)",
        )
        .bind(item.as_str())
        .bind(RECORD_RETENTION.as_secs_f64())
        .execute(&self.pool)
        .await
        .map_err(self.failed("let an item leave Redis"))?;
        Ok(left.rows_affected() == 1)
    }

    /// Gets the version of an item ahead of one that Redis has already, if it is not.
    pub async fn catch_up_version(&self, item: &ItemId, version: u64) -> Result<(), LedgerError> {
        sqlx::query("UPDATE items SET version = $2 + 1 WHERE item_id = $1 AND version < $2")
            .bind(item.as_str())
            .bind(signed(version))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(self.failed("catch a version up"))
    }

    /// Raises the epoch of an item to one that Redis has already, with its layout: the ledger has gone
    /// back in time.
    pub async fn catch_up_epoch(
        &self,
        item: &ItemId,
        epoch: u64,
        buckets: BucketCount,
    ) -> Result<(), LedgerError> {
        sqlx::query(
            "UPDATE items SET epoch = $2, buckets = $3, most_buckets = greatest(most_buckets, $3)
             WHERE item_id = $1 AND epoch < $2",
        )
        .bind(item.as_str())
        .bind(signed(epoch))
        .bind(bucket_column(buckets))
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(self.failed("catch an epoch up"))
    }
}
