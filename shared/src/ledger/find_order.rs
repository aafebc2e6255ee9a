//! Looks an order up.

use super::rows::OrderRow;
use super::{Ledger, LedgerError};
use crate::domain::{Order, RequestId};

impl Ledger {
    /// The ledger's word on a request, if it has decided.
    pub async fn find_order(&self, request_id: RequestId) -> Result<Option<Order>, LedgerError> {
        let row: Option<OrderRow> = sqlx::query_as("SELECT * FROM orders WHERE request_id = $1")
            .bind(request_id.as_uuid())
            .fetch_optional(&self.pool)
            .await
            .map_err(self.failed("read an order"))?;
        row.map(Order::try_from).transpose()
    }
}
