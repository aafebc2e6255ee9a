//! Puts a sale into the ledger.

use super::items::{Item, ItemRow};
use super::rows::{signed, timestamp};
use super::{Ledger, LedgerError};
use crate::domain::Sale;

/// What became of the sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    Created,
    /// It is now as it was put: all of it before its first warm-up, only its window later.
    Changed,
    /// It was there exactly so.
    Unchanged,
    /// It has been warmed up and stays as it is: its total and its limit are fixed by then.
    AlreadyWarm(Item),
}

impl Ledger {
    /// Creates an item, or changes one: its window at any time, its total and limit until it has been
    /// warmed up. Putting the same sale twice changes nothing.
    pub async fn put_item(&self, sale: &Sale) -> Result<PutOutcome, LedgerError> {
        let failed = self.failed("put an item");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let created = sqlx::query(
            "INSERT INTO items (item_id, total, available, limit_per_buyer, opens_at, closes_at)
             VALUES ($1, $2, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        )
        .bind(sale.item.as_str())
        .bind(signed(sale.total))
        .bind(sale.limit_per_buyer.map(signed))
        .bind(timestamp(sale.window.opens_at()))
        .bind(timestamp(sale.window.closes_at()))
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
        let outcome = if created == 1 {
            PutOutcome::Created
        } else if existing.sale == *sale {
            PutOutcome::Unchanged
        } else if existing.epoch > 0 && !existing.sale.differs_only_in_window(sale) {
            PutOutcome::AlreadyWarm(existing)
        } else {
            // A total that changes has nothing sold yet.
            sqlx::query(
                "UPDATE items SET total = $2, available = available + $2 - total,
                        limit_per_buyer = $3, opens_at = $4, closes_at = $5,
                        left_redis_at = NULL, version = version + 1, changed_at = now()
                 WHERE item_id = $1",
            )
            .bind(sale.item.as_str())
            .bind(signed(sale.total))
            .bind(sale.limit_per_buyer.map(signed))
            .bind(timestamp(sale.window.opens_at()))
            .bind(timestamp(sale.window.closes_at()))
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
            PutOutcome::Changed
        };
        transaction.commit().await.map_err(&failed)?;
        Ok(outcome)
    }
}
