//! How a micro-batch of reservations is decided, in memory, between the row locks and the insert.

use std::collections::HashMap;

use super::{BuyerId, ItemId, Order, OrderState, Reason, RequestId, Reservation, UnixMillis};

/// What the ledger says of an item while its row is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub available: u64,
    pub limit_per_buyer: Option<u64>,
}

/// What becomes of one reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Decided now, or earlier under this same reservation id: what follows it is repeated.
    Ordered(Order),
    /// The request is decided under *another* reservation id: only this reservation's stock goes back.
    Surplus(Order),
    /// The request is decided with another buyer, item or quantity. Somebody has to look.
    Mismatch(Order),
    /// The ledger knows no such item. Somebody has to look.
    UnknownItem,
}

/// The decisions of a batch, one a reservation and in its order, and what they write.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decided {
    pub decisions: Vec<Decision>,
    /// Positions of the reservations whose orders are new: these are inserted.
    pub new: Vec<usize>,
    /// What this batch does to each item of which it decides something new.
    pub changes: HashMap<ItemId, Change>,
}

/// What a batch does to one item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Units sold.
    pub sold: u64,
    /// When the newest of the decided reservations was reserved.
    pub decided_until: Option<UnixMillis>,
}

/// Decides a batch in message order. The batch may hold the same item, buyer or request many times.
///
/// `known` are the orders that exist under the batch's request ids, `standings` the locked items,
/// `bought` the units that each (item, buyer) has confirmed; whoever is missing has none.
pub fn decide(
    reservations: &[Reservation],
    mut known: HashMap<RequestId, Order>,
    mut standings: HashMap<ItemId, Standing>,
    mut bought: HashMap<(ItemId, BuyerId), u64>,
) -> Decided {
    let mut decided = Decided::default();
    for (position, reservation) in reservations.iter().enumerate() {
        let decision =
            match (known.get(&reservation.request_id), standings.get_mut(&reservation.item)) {
                (Some(order), _) => repeat(reservation, order),
                (None, None) => Decision::UnknownItem,
                (None, Some(standing)) => {
                    let buyer = (reservation.item.clone(), reservation.buyer.clone());
                    let bought = bought.entry(buyer).or_insert(0);
                    let state = judge(reservation, standing, *bought);
                    let change = decided.changes.entry(reservation.item.clone()).or_default();
                    change.decided_until = change.decided_until.max(Some(reservation.reserved_at));
                    if state == OrderState::Confirmed {
                        let units = reservation.quantity.units();
                        standing.available -= units;
                        *bought += units;
                        change.sold += units;
                    }
                    let order = Order::of(reservation, state);
                    known.insert(reservation.request_id, order.clone());
                    decided.new.push(position);
                    Decision::Ordered(order)
                }
            };
        decided.decisions.push(decision);
    }
    decided
}

fn repeat(reservation: &Reservation, order: &Order) -> Decision {
    let same_purchase = order.item == reservation.item
        && order.buyer == reservation.buyer
        && order.quantity == reservation.quantity;
    if !same_purchase {
        Decision::Mismatch(order.clone())
    } else if order.reservation_id == reservation.reservation_id {
        Decision::Ordered(order.clone())
    } else {
        Decision::Surplus(order.clone())
    }
}

fn judge(reservation: &Reservation, standing: &Standing, bought: u64) -> OrderState {
    let units = reservation.quantity.units();
    if standing.limit_per_buyer.is_some_and(|limit| bought + units > limit) {
        OrderState::Rejected(Reason::LIMIT_REACHED)
    } else if units > standing.available {
        OrderState::Rejected(Reason::SOLD_OUT)
    } else {
        OrderState::Confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Quantity, ReservationId};

    fn reservation(buyer: &str, key: &str, units: u64) -> Reservation {
        let buyer: BuyerId = buyer.parse().expect("a buyer");
        let item: ItemId = "shoe".parse().expect("an item");
        let key = key.parse().expect("a key");
        Reservation {
            request_id: RequestId::derive(&buyer, &item, &key),
            reservation_id: ReservationId::mint(),
            item,
            epoch: 1,
            buyer,
            quantity: Quantity::new(units).expect("a quantity"),
            reserved_at: UnixMillis(0),
        }
    }

    fn shoes(available: u64, limit_per_buyer: Option<u64>) -> HashMap<ItemId, Standing> {
        let item = "shoe".parse().expect("an item");
        HashMap::from([(item, Standing { available, limit_per_buyer })])
    }

    fn units_sold(decided: &Decided) -> u64 {
        decided.changes.values().map(|change| change.sold).sum()
    }

    fn states(decided: &Decided) -> Vec<Option<OrderState>> {
        let state = |decision: &Decision| match decision {
            Decision::Ordered(order) => Some(order.state.clone()),
            _ => None,
        };
        decided.decisions.iter().map(state).collect()
    }

    #[test]
    fn one_batch_never_sells_more_than_is_available() {
        let batch: Vec<_> =
            ["a", "b", "c"].iter().map(|buyer| reservation(buyer, "1", 2)).collect();
        let decided = decide(&batch, HashMap::new(), shoes(3, None), HashMap::new());
        let sold_out = Some(OrderState::Rejected(Reason::SOLD_OUT));
        assert_eq!(states(&decided), [Some(OrderState::Confirmed), sold_out.clone(), sold_out]);
        assert_eq!(units_sold(&decided), 2);
        assert_eq!(decided.new, [0, 1, 2], "losers are recorded as well");
    }

    #[test]
    fn a_smaller_purchase_behind_a_refused_one_is_still_served() {
        let batch = [reservation("a", "1", 3), reservation("b", "1", 1)];
        let decided = decide(&batch, HashMap::new(), shoes(2, None), HashMap::new());
        assert_eq!(states(&decided)[1], Some(OrderState::Confirmed));
    }

    #[test]
    fn the_limit_counts_earlier_orders_and_earlier_lines_of_the_batch() {
        let batch = [reservation("a", "1", 1), reservation("a", "2", 1)];
        let bought = HashMap::from([((batch[0].item.clone(), batch[0].buyer.clone()), 1)]);
        let decided = decide(&batch, HashMap::new(), shoes(9, Some(2)), bought);
        assert_eq!(
            states(&decided),
            [Some(OrderState::Confirmed), Some(OrderState::Rejected(Reason::LIMIT_REACHED))]
        );
    }

    #[test]
    fn a_duplicate_message_repeats_the_decision_and_sells_nothing() {
        let one = reservation("a", "1", 1);
        let decided = decide(&[one.clone(), one], HashMap::new(), shoes(9, None), HashMap::new());
        assert_eq!(decided.decisions[0], decided.decisions[1]);
        assert_eq!(decided.new, [0]);
        assert_eq!(units_sold(&decided), 1);
    }

    #[test]
    fn another_reservation_of_a_decided_request_is_surplus() {
        let first = reservation("a", "1", 1);
        let second = Reservation { reservation_id: ReservationId::mint(), ..first.clone() };
        let decided = decide(&[first, second], HashMap::new(), shoes(9, None), HashMap::new());
        assert!(matches!(decided.decisions[1], Decision::Surplus(_)));
        assert_eq!(units_sold(&decided), 1);
    }

    #[test]
    fn a_message_that_contradicts_its_order_is_set_aside() {
        let first = reservation("a", "1", 1);
        let forged = Reservation { quantity: Quantity::new(5).expect("five"), ..first.clone() };
        let decided = decide(&[first, forged], HashMap::new(), shoes(9, None), HashMap::new());
        assert!(matches!(decided.decisions[1], Decision::Mismatch(_)));
    }

    #[test]
    fn an_item_that_the_ledger_does_not_know_is_set_aside() {
        let decided =
            decide(&[reservation("a", "1", 1)], HashMap::new(), HashMap::new(), HashMap::new());
        assert_eq!(decided.decisions, [Decision::UnknownItem]);
        assert!(decided.new.is_empty());
    }
}
