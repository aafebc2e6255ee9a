//! What a compensation may do, once the ledger has been asked.

use super::{Order, OrderState, ReservationId, Verdict};

/// The answer to "may this reservation's stock go back?"
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The units may go back; the hold takes this verdict on its request.
    Restore(Verdict),
    /// A confirmed order names this very reservation: its units are sold.
    Refuse,
}

/// Resolves a compensation of `reservation_id` against the order of its request. A request without
/// an order is expired first: the tombstone is what a late message then finds.
pub fn resolve(reservation_id: ReservationId, order: &Order) -> Resolution {
    if order.state == OrderState::Confirmed && order.reservation_id == reservation_id {
        Resolution::Refuse
    } else {
        Resolution::Restore(order.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Quantity, Reason, RequestId};

    fn order(reservation_id: ReservationId, state: OrderState) -> Order {
        let buyer = "ann".parse().expect("a buyer");
        let item = "shoe".parse().expect("an item");
        let request_id = RequestId::derive(&buyer, &item, &"1".parse().expect("a key"));
        let quantity = Quantity::new(1).expect("one");
        Order { request_id, reservation_id, item, buyer, quantity, state }
    }

    #[test]
    fn stock_goes_back_only_when_the_ledger_has_not_sold_it() {
        let (mine, other) = (ReservationId::mint(), ReservationId::mint());
        let rejected = OrderState::Rejected(Reason::SOLD_OUT);
        let expired = OrderState::Expired(Reason::COMPENSATED);
        assert_eq!(resolve(mine, &order(mine, OrderState::Confirmed)), Resolution::Refuse);
        assert_eq!(
            resolve(mine, &order(other, OrderState::Confirmed)),
            Resolution::Restore(Verdict::Confirmed(other))
        );
        assert_eq!(
            resolve(mine, &order(mine, rejected)),
            Resolution::Restore(Verdict::Rejected(Reason::SOLD_OUT))
        );
        assert_eq!(
            resolve(mine, &order(other, expired)),
            Resolution::Restore(Verdict::Expired(Reason::COMPENSATED))
        );
    }
}
