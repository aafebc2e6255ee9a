//! Looks many orders up at once.

use std::collections::HashMap;

use sqlx::{Executor, Postgres};
use uuid::Uuid;

use super::rows::OrderRow;
use super::{Ledger, LedgerError};
use crate::domain::{Order, RequestId};

impl Ledger {
    /// The ledger's word on each request that it has decided.
    pub async fn find_orders(
        &self,
        requests: &[RequestId],
    ) -> Result<HashMap<RequestId, Order>, LedgerError> {
        self.orders_of(&self.pool, requests).await
    }

    /// The same, through a connection of the caller's, such as a transaction.
    pub(super) async fn orders_of<'c>(
        &self,
        executor: impl Executor<'c, Database = Postgres>,
        requests: &[RequestId],
    ) -> Result<HashMap<RequestId, Order>, LedgerError> {
        let ids: Vec<Uuid> = requests.iter().map(RequestId::as_uuid).collect();
        let rows: Vec<OrderRow> = sqlx::query_as("SELECT * FROM orders WHERE request_id = ANY($1)")
            .bind(ids)
            .fetch_all(executor)
            .await
            .map_err(self.failed("read orders"))?;
        rows.into_iter()
            .map(|row| Order::try_from(row).map(|order| (order.request_id, order)))
            .collect()
    }
}
