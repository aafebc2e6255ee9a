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

impl OverdueStep {
    /// What it is called where steps are counted.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Restore(_) => "restore",
            Self::PublishAgain => "publish_again",
            Self::LeaveParked => "leave_parked",
            Self::LeaveQueued => "leave_queued",
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Quantity, Reason, RequestId, ReservationId, UnixMillis};

    fn overdue() -> Reservation {
        let (buyer, item) = ("ann".parse().expect("a buyer"), "shoe".parse().expect("an item"));
        Reservation {
            request_id: RequestId::derive(&buyer, &item, &"1".parse().expect("a key")),
            reservation_id: ReservationId::mint(),
            item,
            epoch: 1,
            buyer,
            quantity: Quantity::new(1).expect("one"),
            reserved_at: UnixMillis(0),
        }
    }

    #[test]
    fn what_the_ledger_decided_is_done_wherever_the_message_is() {
        let hold = overdue();
        let confirmed = Order::of(&hold, OrderState::Confirmed);
        let rejected = Order::of(&hold, OrderState::Rejected(Reason::SOLD_OUT));
        let other = ReservationId::mint();
        let surplus = Order { reservation_id: other, ..confirmed.clone() };
        for whereabouts in [Whereabouts::Parked, Whereabouts::Queued, Whereabouts::Unknown] {
            let step = |order| finish_overdue(&hold, Some(order), whereabouts);
            assert_eq!(step(&confirmed), OverdueStep::Confirm);
            assert_eq!(step(&rejected), OverdueStep::Restore(Verdict::Rejected(Reason::SOLD_OUT)));
            assert_eq!(step(&surplus), OverdueStep::Restore(Verdict::Confirmed(other)));
        }
    }

    #[test]
    fn an_undecided_hold_is_never_given_back() {
        let step = |whereabouts| finish_overdue(&overdue(), None, whereabouts);
        assert_eq!(step(Whereabouts::Parked), OverdueStep::LeaveParked);
        assert_eq!(step(Whereabouts::Queued), OverdueStep::LeaveQueued);
        assert_eq!(step(Whereabouts::Unknown), OverdueStep::PublishAgain);
    }
}
