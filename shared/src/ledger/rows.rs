//! How values look in columns, and back.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::LedgerError;
use crate::domain::{Order, OrderState, Quantity, RequestId, ReservationId, UnixMillis};

#[derive(FromRow)]
pub(super) struct OrderRow {
    request_id: Uuid,
    reservation_id: Uuid,
    item_id: String,
    buyer_id: String,
    quantity: i64,
    state: String,
    reason: Option<String>,
}

impl TryFrom<OrderRow> for Order {
    type Error = LedgerError;

    fn try_from(row: OrderRow) -> Result<Self, LedgerError> {
        Ok(Self {
            request_id: RequestId::from_uuid(row.request_id),
            reservation_id: ReservationId::from_uuid(row.reservation_id),
            item: row.item_id.parse().map_err(LedgerError::corrupt)?,
            buyer: row.buyer_id.parse().map_err(LedgerError::corrupt)?,
            quantity: Quantity::new(unsigned(row.quantity)?).map_err(LedgerError::corrupt)?,
            state: order_state(&row.state, row.reason.as_deref())?,
        })
    }
}

fn order_state(state: &str, reason: Option<&str>) -> Result<OrderState, LedgerError> {
    let reason = || reason.unwrap_or_default().parse().map_err(LedgerError::corrupt);
    match state {
        "confirmed" => Ok(OrderState::Confirmed),
        "rejected" => Ok(OrderState::Rejected(reason()?)),
        "expired" => Ok(OrderState::Expired(reason()?)),
        other => Err(LedgerError::corrupt(format!("an order in state {other:?}"))),
    }
}

/// The columns `state` and `reason`.
pub(super) fn state_columns(state: &OrderState) -> (&'static str, Option<String>) {
    match state {
        OrderState::Confirmed => ("confirmed", None),
        OrderState::Rejected(reason) => ("rejected", Some(reason.to_string())),
        OrderState::Expired(reason) => ("expired", Some(reason.to_string())),
    }
}

/// A count in a column; the schema keeps counts at 0 or above.
pub(super) fn unsigned(number: i64) -> Result<u64, LedgerError> {
    u64::try_from(number).map_err(LedgerError::corrupt)
}

/// A count for a column. The domain keeps counts far below what a column holds.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn timestamp(at: UnixMillis) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(signed(at.0)).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

pub(super) fn unix_millis(at: DateTime<Utc>) -> UnixMillis {
    UnixMillis(u64::try_from(at.timestamp_millis()).unwrap_or(0))
}
