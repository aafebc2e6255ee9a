//! What the ledger's orders add up to, counted one by one.

use super::rows::unsigned;
use super::{Ledger, LedgerError};
use crate::domain::ItemId;

type Row = (i64, i64, i64, i64, i64, i64);

/// The orders of one item, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderCounts {
    /// Buyers that have any order.
    pub buyers: u64,
    pub confirmed: u64,
    pub confirmed_units: u64,
    pub rejected: u64,
    pub expired: u64,
    /// The most units that any buyer has confirmed.
    pub most_by_one_buyer: u64,
}

impl Ledger {
    /// Counts the orders of an item.
    pub async fn count_orders(&self, item: &ItemId) -> Result<OrderCounts, LedgerError> {
        let (buyers, confirmed, confirmed_units, rejected, expired, most): Row =
            sqlx::query_as(include_str!("sql/count_orders.sql"))
                .bind(item.as_str())
                .fetch_one(&self.pool)
                .await
                .map_err(self.failed("count orders"))?;
        Ok(OrderCounts {
            buyers: unsigned(buyers)?,
            confirmed: unsigned(confirmed)?,
            confirmed_units: unsigned(confirmed_units)?,
            rejected: unsigned(rejected)?,
            expired: unsigned(expired)?,
            most_by_one_buyer: unsigned(most)?,
        })
    }
}
