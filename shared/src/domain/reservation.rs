//! One taking of stock, as it travels from Redis through the queue to the ledger.

use super::{BuyerId, ItemId, Quantity, RequestId, ReservationId, UnixMillis};

/// Stock that was taken for a buyer and waits for the ledger's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub request_id: RequestId,
    pub reservation_id: ReservationId,
    pub item: ItemId,
    /// The warm-up whose stock it was taken from.
    pub epoch: u64,
    pub buyer: BuyerId,
    pub quantity: Quantity,
    /// By the clock of Redis.
    pub reserved_at: UnixMillis,
}
