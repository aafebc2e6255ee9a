//! Why Redis and the ledger differ, request by request.

use std::fmt;

use super::{HoldState, Order, OrderState, ReservationId};

/// What Redis has written down of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub state: HoldState,
    pub reservation_id: ReservationId,
    /// True when its order was confirmed without a hold since the last comparison.
    pub is_unseen: bool,
}

/// How one request makes the sides differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The ledger sold it, and Redis has no record of it.
    NeverTaken,
    /// The ledger sold it, and Redis heard of it after it had lost the hold.
    TakenFromAnotherEpoch,
    /// The ledger sold this very reservation, and Redis gave its stock back.
    GivenBack,
    /// Redis counts it as sold, and the ledger refused it.
    CountedAsSold,
    /// Redis counts it as sold, and the ledger does not know it.
    LostByLedger,
}

impl Cause {
    /// Units that this adds to the difference, for a request of so many.
    pub fn units(self, quantity: u64) -> i64 {
        let quantity = i64::try_from(quantity).unwrap_or(i64::MAX);
        match self {
            Self::NeverTaken | Self::TakenFromAnotherEpoch | Self::GivenBack => -quantity,
            Self::CountedAsSold | Self::LostByLedger => quantity,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeverTaken => "the ledger sold it, Redis never took its units",
            Self::TakenFromAnotherEpoch => "the ledger sold it after Redis had lost its hold",
            Self::GivenBack => "the ledger sold it, Redis gave its units back",
            Self::CountedAsSold => "Redis counts it as sold, the ledger refused it",
            Self::LostByLedger => "Redis counts it as sold, the ledger has lost it",
        })
    }
}

/// How an order and its record differ; `None` when they agree, or will as soon as it is settled.
pub fn cause(order: &Order, record: Option<&Record>) -> Option<Cause> {
    let is_sold = order.state == OrderState::Confirmed;
    let Some(record) = record else { return is_sold.then_some(Cause::NeverTaken) };
    let is_own = record.reservation_id == order.reservation_id;
    match record.state {
        HoldState::Confirmed if is_sold && record.is_unseen => Some(Cause::TakenFromAnotherEpoch),
        HoldState::Confirmed if !is_sold && is_own => Some(Cause::CountedAsSold),
        HoldState::Restored if is_sold && is_own => Some(Cause::GivenBack),
        HoldState::Confirmed | HoldState::Restored | HoldState::Held => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Quantity, Reason, RequestId};

    #[test]
    fn each_cause_is_told_apart() {
        let (buyer, item) = ("ann".parse().expect("a buyer"), "shoe".parse().expect("an item"));
        let sold = Order {
            request_id: RequestId::derive(&buyer, &item, &"1".parse().expect("a key")),
            reservation_id: ReservationId::mint(),
            item,
            buyer,
            quantity: Quantity::new(2).expect("units"),
            state: OrderState::Confirmed,
        };
        let refused = Order { state: OrderState::Rejected(Reason::SOLD_OUT), ..sold.clone() };
        let record =
            |state| Record { state, reservation_id: sold.reservation_id, is_unseen: false };
        let confirmed = record(HoldState::Confirmed);
        let unseen = Record { is_unseen: true, ..confirmed };
        let restored = record(HoldState::Restored);
        let surplus = Record { reservation_id: ReservationId::mint(), ..restored };
        assert_eq!(cause(&sold, None), Some(Cause::NeverTaken));
        assert_eq!(cause(&sold, Some(&unseen)), Some(Cause::TakenFromAnotherEpoch));
        assert_eq!(cause(&sold, Some(&restored)), Some(Cause::GivenBack));
        assert_eq!(cause(&refused, Some(&confirmed)), Some(Cause::CountedAsSold));
        for (order, record) in [
            (&sold, Some(&confirmed)),
            (&sold, Some(&surplus)),
            (&sold, Some(&record(HoldState::Held))),
            (&refused, Some(&restored)),
            (&refused, Some(&record(HoldState::Held))),
            (&refused, None),
        ] {
            assert_eq!(cause(order, record), None, "{order:?} {record:?}");
        }
    }
}
