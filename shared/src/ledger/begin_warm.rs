//! Begins a warm-up: raises the epoch, then reads what Redis is built from, at one instant.

use sqlx::{FromRow, Postgres, Transaction};
use uuid::Uuid;

use super::items::{Item, ItemRow, bucket_column};
use super::rows::{OrderRow, signed, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{BucketCount, BuyerId, ItemId, Order, RequestId};

/// A decided order, and all that its buyer has confirmed of the item.
#[derive(Debug, Clone)]
pub struct WarmOrder {
    pub order: Order,
    pub buyer_total: u64,
}

/// What a warm-up builds an item's Redis state from: the item, and page by page its decided orders,
/// all as of one instant. What is decided later, Redis hears from consumers.
pub struct WarmReading {
    pub item: Item,
    transaction: Transaction<'static, Postgres>,
    /// Of the last page.
    last: Option<(BuyerId, RequestId)>,
}

#[derive(FromRow)]
struct WarmOrderRow {
    #[sqlx(flatten)]
    order: OrderRow,
    buyer_total: i64,
}

impl Ledger {
    /// Raises the epoch of an item above its own and above `seen`, the latest one in Redis, and with it
    /// its number of buckets, which never changes within an epoch; without one it keeps its own.
    /// `None` when a later holder of the item lock was here: nothing is raised then.
    pub async fn begin_warm(
        &self,
        item: &ItemId,
        fence: u64,
        seen: u64,
        buckets: Option<BucketCount>,
    ) -> Result<Option<u64>, LedgerError> {
        let epoch: Option<i64> = sqlx::query_scalar(
            "UPDATE items SET epoch = greatest(epoch, $3) + 1, version = version + 1,
                    buckets = coalesce($4, buckets),
                    most_buckets = greatest(most_buckets, $4),
                    changed_at = now(), left_redis_at = NULL
             WHERE item_id = $1 AND fence = $2 RETURNING epoch",
        )
        .bind(item.as_str())
        .bind(signed(fence))
        .bind(signed(seen))
        .bind(buckets.map(bucket_column))
        .fetch_optional(&self.pool)
        .await
        .map_err(self.failed("begin a warm-up"))?;
        epoch.map(unsigned).transpose()
    }

    /// Begins to read an item; `None` when there is no such item.
    pub async fn read_for_warm(&self, item: &ItemId) -> Result<Option<WarmReading>, LedgerError> {
        let failed = self.failed("read an item for its warm-up");
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = self.pool.begin_with(begin).await.map_err(&failed)?;
        let row: Option<ItemRow> = sqlx::query_as("SELECT * FROM items WHERE item_id = $1")
            .bind(item.as_str())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(&failed)?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(WarmReading { item: Item::try_from(row)?, transaction, last: None }))
    }

    /// The next page of up to `most` orders; an empty one follows the last.
    pub async fn next_orders(
        &self,
        reading: &mut WarmReading,
        most: usize,
    ) -> Result<Vec<WarmOrder>, LedgerError> {
        let last = reading.last.as_ref();
        let rows: Vec<WarmOrderRow> = sqlx::query_as(include_str!("sql/orders_for_warm.sql"))
            .bind(reading.item.sale.item.as_str())
            .bind(last.map_or("", |(buyer, _)| buyer.as_str()))
            .bind(last.map_or(Uuid::nil(), |(_, request_id)| request_id.as_uuid()))
            .bind(signed(most as u64))
            .fetch_all(&mut *reading.transaction)
            .await
            .map_err(self.failed("read orders for a warm-up"))?;
        let orders = rows.into_iter().map(|row| {
            let buyer_total = unsigned(row.buyer_total)?;
            Ok(WarmOrder { order: Order::try_from(row.order)?, buyer_total })
        });
        let orders = orders.collect::<Result<Vec<_>, LedgerError>>()?;
        if let Some(WarmOrder { order, .. }) = orders.last() {
            reading.last = Some((order.buyer.clone(), order.request_id));
        }
        Ok(orders)
    }
}
