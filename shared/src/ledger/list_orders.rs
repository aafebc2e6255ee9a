//! The decided orders of an item, page by page.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::rows::{OrderRow, signed, unix_millis, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, ItemId, Order, RequestId, UnixMillis};

/// An order, and the reservation that it decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedOrder {
    pub order: Order,
    pub epoch: u64,
    /// Unknown for a request that expired before it was decided.
    pub reserved_at: Option<UnixMillis>,
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    order: OrderRow,
    epoch: i64,
    reserved_at: Option<DateTime<Utc>>,
}

impl Ledger {
    /// Up to `most` orders after `after`, in the order of their buyers and request ids.
    pub async fn list_orders(
        &self,
        item: &ItemId,
        after: Option<&(BuyerId, RequestId)>,
        most: usize,
    ) -> Result<Vec<DecidedOrder>, LedgerError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT * FROM orders WHERE item_id = $1 AND (buyer_id, request_id) > ($2, $3)
             ORDER BY buyer_id, request_id LIMIT $4",
        )
        .bind(item.as_str())
        .bind(after.map_or("", |(buyer, _)| buyer.as_str()))
        .bind(after.map_or(Uuid::nil(), |(_, request_id)| request_id.as_uuid()))
        .bind(signed(most as u64))
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("list orders"))?;
        rows.into_iter()
            .map(|row| {
                Ok(DecidedOrder {
                    order: Order::try_from(row.order)?,
                    epoch: unsigned(row.epoch)?,
                    reserved_at: row.reserved_at.map(unix_millis),
                })
            })
            .collect()
    }
}
