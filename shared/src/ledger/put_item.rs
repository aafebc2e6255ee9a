//! Puts a sale into the ledger.

use super::items::{Item, ItemRow, bucket_column};
use super::rows::{signed, timestamp};
use super::{Ledger, LedgerError};
use crate::domain::{BucketCount, Sale};

/// What became of the sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    Created,
    /// It is now as it was put: all of it before its first warm-up, only its window later.
    Changed,
    /// It was there exactly so.
    Unchanged,
    /// It has been warmed up and stays as it is: its total, its limit and its buckets are fixed by
    /// then.
    AlreadyWarm(Item),
}

impl Ledger {
    /// Creates an item, or changes one: its window at any time, its total, limit and buckets until it
    /// has been warmed up. Without a number of buckets it keeps its own, or gets one. Putting the same
    /// sale twice changes nothing.
    pub async fn put_item(
        &self,
        sale: &Sale,
        buckets: Option<BucketCount>,
    ) -> Result<PutOutcome, LedgerError> {
        let failed = self.failed("put an item");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let created = sqlx::query(
            "INSERT INTO items (item_id, total, available, limit_per_buyer, opens_at, closes_at, buckets,
                                most_buckets)
             VALUES ($1, $2, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING",
        )
        .bind(sale.item.as_str())
        .bind(signed(sale.total))
        .bind(sale.limit_per_buyer.map(signed))
        .bind(timestamp(sale.window.opens_at()))
        .bind(timestamp(sale.window.closes_at()))
        .bind(bucket_column(buckets.unwrap_or(BucketCount::ONE)))
        .execute(&mut *transaction)
        .await
        .map_err(&failed)?
        .rows_affected();
        let row: ItemRow = sqlx::query_as("SELECT * FROM items WHERE item_id = $1 FOR UPDATE")
            .bind(sale.item.as_str())
            .fetch_one(&mut *transaction)
            .await
            .map_err(&failed)?;
        let existing = Item::try_from(row)?;
        let buckets = buckets.unwrap_or(existing.buckets);
        let same_buckets = buckets == existing.buckets;
        let only_window = same_buckets && existing.sale.differs_only_in_window(sale);
        let outcome = if created == 1 {
            PutOutcome::Created
        } else if existing.sale == *sale && same_buckets {
            PutOutcome::Unchanged
        } else if existing.epoch > 0 && !only_window {
            PutOutcome::AlreadyWarm(existing)
        } else {
            // A total that changes has nothing sold yet.
            sqlx::query(
                "UPDATE items SET total = $2, available = available + $2 - total,
                        limit_per_buyer = $3, opens_at = $4, closes_at = $5,
                        buckets = $6, most_buckets = greatest(most_buckets, $6),
                        left_redis_at = NULL, version = version + 1, changed_at = now()
                 WHERE item_id = $1",
            )
            .bind(sale.item.as_str())
            .bind(signed(sale.total))
            .bind(sale.limit_per_buyer.map(signed))
            .bind(timestamp(sale.window.opens_at()))
            .bind(timestamp(sale.window.closes_at()))
            .bind(bucket_column(buckets))
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
            PutOutcome::Changed
        };
        transaction.commit().await.map_err(&failed)?;
        Ok(outcome)
    }
}
