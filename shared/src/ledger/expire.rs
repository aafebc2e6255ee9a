//! Writes a tombstone for a request that the ledger has not decided.

use super::rows::{OrderRow, signed};
use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, ItemId, Order, Quantity, Reason, RequestId, ReservationId};

/// The request to expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiry {
    pub request_id: RequestId,
    pub reservation_id: ReservationId,
    pub item: ItemId,
    pub buyer: BuyerId,
    pub quantity: Quantity,
    pub epoch: u64,
    pub reason: Reason,
}

impl Ledger {
    /// Expires a request that is not decided, and returns the ledger's word on it: the new
    /// tombstone, or the decision that was there first. `None` when the ledger has no such item.
    ///
    /// Whoever gives stock back for an undecided request does this first: a late message then
    /// finds the tombstone and is not sold.
    pub async fn expire(&self, expiry: &Expiry) -> Result<Option<Order>, LedgerError> {
        let failed = self.failed("expire a request");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let locked = sqlx::query("SELECT 1 FROM items WHERE item_id = $1 FOR UPDATE")
            .bind(expiry.item.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?
            .rows_affected();
        if locked == 0 {
            transaction.rollback().await.map_err(&failed)?;
            return Ok(None);
        }
        sqlx::query(
            "INSERT INTO orders
                 (request_id, reservation_id, item_id, buyer_id, quantity, state, reason, epoch)
             VALUES ($1, $2, $3, $4, $5, 'expired', $6, $7) ON CONFLICT DO NOTHING",
        )
        .bind(expiry.request_id.as_uuid())
        .bind(expiry.reservation_id.as_uuid())
        .bind(expiry.item.as_str())
        .bind(expiry.buyer.as_str())
        .bind(signed(expiry.quantity.units()))
        .bind(expiry.reason.to_string())
        .bind(signed(expiry.epoch))
        .execute(&mut *transaction)
        .await
        .map_err(&failed)?;
        let row: OrderRow = sqlx::query_as("SELECT * FROM orders WHERE request_id = $1")
            .bind(expiry.request_id.as_uuid())
            .fetch_one(&mut *transaction)
            .await
            .map_err(&failed)?;
        let order = Order::try_from(row)?;
        transaction.commit().await.map_err(&failed)?;
        Ok(Some(order))
    }
}
