//! Begins a warm-up: raises the epoch and reads what Redis is built from, at one instant.

use std::collections::HashMap;

use super::items::{Item, ItemRow};
use super::rows::OrderRow;
use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, ItemId, Order, OrderState};

/// What a warm-up builds an item's Redis state from.
#[derive(Debug, Clone)]
pub struct WarmPlan {
    /// With the epoch of this warm-up.
    pub item: Item,
    pub confirmed_units: u64,
    pub orders: Vec<WarmOrder>,
}

/// A decided order, and all that its buyer has confirmed of the item.
#[derive(Debug, Clone)]
pub struct WarmOrder {
    pub order: Order,
    pub buyer_total: u64,
}

impl Ledger {
    /// Raises the epoch of an item; `None` when there is no such item. The row lock keeps
    /// decisions out while the orders are read.
    pub async fn begin_warm(&self, item: &ItemId) -> Result<Option<WarmPlan>, LedgerError> {
        let failed = self.failed("begin a warm-up");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let row: Option<ItemRow> = sqlx::query_as(
            "UPDATE items SET epoch = epoch + 1, version = version + 1, changed_at = now()
             WHERE item_id = $1 RETURNING *",
        )
        .bind(item.as_str())
        .fetch_optional(&mut *transaction)
        .await
        .map_err(&failed)?;
        let Some(row) = row else {
            transaction.rollback().await.map_err(&failed)?;
            return Ok(None);
        };
        let rows: Vec<OrderRow> = sqlx::query_as("SELECT * FROM orders WHERE item_id = $1")
            .bind(item.as_str())
            .fetch_all(&mut *transaction)
            .await
            .map_err(&failed)?;
        let item = Item::try_from(row)?;
        let orders = rows.into_iter().map(Order::try_from).collect::<Result<Vec<_>, _>>()?;
        transaction.commit().await.map_err(&failed)?;
        Ok(Some(plan(item, orders)))
    }
}

fn plan(item: Item, orders: Vec<Order>) -> WarmPlan {
    let mut totals: HashMap<BuyerId, u64> = HashMap::new();
    for order in orders.iter().filter(|order| order.state == OrderState::Confirmed) {
        *totals.entry(order.buyer.clone()).or_insert(0) += order.quantity.units();
    }
    let with_total = |order: Order| {
        let buyer_total = totals.get(&order.buyer).copied().unwrap_or(0);
        WarmOrder { order, buyer_total }
    };
    WarmPlan {
        item,
        confirmed_units: totals.values().sum(),
        orders: orders.into_iter().map(with_total).collect(),
    }
}
