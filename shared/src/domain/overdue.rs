//! What becomes of a hold that nobody has finished in time.

use super::{Order, OrderState, Reservation, Verdict};

/// The next step for an overdue hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverdueStep {
    /// The ledger sold exactly this reservation.
    Confirm,
    /// The ledger did not sell it; its units go back.
    Restore(Verdict),
    /// Undecided, and its message is nowhere to be seen.
    PublishAgain,
    /// Undecided, and an operator has its message.
    LeaveParked,
    /// Undecided, and its message simply waits its turn.
    LeaveQueued,
}

/// Where the message of an undecided reservation is, as far as anybody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    Parked,
    /// Its partition has messages that nobody has taken yet, and nothing that was reserved later
    /// has been decided.
    Queued,
    Unknown,
}

/// An accepted hold is never expired for being late: only the ledger's word, or an operator's, ends
/// it without a sale.
pub fn finish_overdue(
    reservation: &Reservation,
    order: Option<&Order>,
    whereabouts: Whereabouts,
) -> OverdueStep {
    match (order, whereabouts) {
        (Some(order), _)
            if order.state == OrderState::Confirmed
                && order.reservation_id == reservation.reservation_id =>
        {
            OverdueStep::Confirm
        }
        (Some(order), _) => OverdueStep::Restore(order.verdict()),
        (None, Whereabouts::Parked) => OverdueStep::LeaveParked,
        (None, Whereabouts::Queued) => OverdueStep::LeaveQueued,
        (None, Whereabouts::Unknown) => OverdueStep::PublishAgain,
    }
}
