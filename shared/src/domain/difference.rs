//! What Redis has too few or too many of, compared with the ledger.

use std::collections::{HashMap, HashSet};

use super::{BuyerId, Quantity, RequestId, ReservationId, UnixMillis};

/// A hold that is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenHold {
    pub request_id: RequestId,
    pub reservation_id: ReservationId,
    pub buyer: BuyerId,
    pub quantity: Quantity,
    pub reserved_at: UnixMillis,
}

/// All buckets of an item, as Redis has them while nothing can be reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StockSide {
    pub available: u64,
    /// Units on their way from one bucket to another.
    pub moving: u64,
    pub confirmed_units: u64,
    pub holds: HashMap<ReservationId, OpenHold>,
    /// The buyers that are compared, and their totals.
    pub totals: HashMap<BuyerId, u64>,
}

/// The same item as the ledger has it, read *after* Redis: what was settled in between has then moved
/// both sides alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerSide {
    pub available: u64,
    pub confirmed_units: u64,
    /// True when there is a limit per buyer; only then Redis keeps totals.
    pub is_limited: bool,
    /// Which of the holds are confirmed under their own reservation ids.
    pub confirmed_holds: HashSet<ReservationId>,
    /// What the compared buyers have confirmed.
    pub totals: HashMap<BuyerId, u64>,
}

/// What has to be added to Redis so that it agrees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// To what is available: ledger available − available − moving − units held and not yet confirmed.
    pub units: i64,
    /// To the totals of buyers; those that agree are left out. In the order of their ids.
    pub buyers: Vec<(BuyerId, i64)>,
    /// Confirmed units that Redis has counted and the ledger does not have: the ledger has gone back
    /// in time.
    pub ledger_behind: u64,
}

impl Difference {
    /// True when both sides agree.
    pub fn is_none(&self) -> bool {
        self.units == 0 && self.buyers.is_empty() && self.ledger_behind == 0
    }
}

/// Compares an item. Confirmed holds have left the ledger's `available` already, and those that the
/// ledger refused come back by a restore; so the units of both cancel out or stay held.
pub fn difference(stock: &StockSide, ledger: &LedgerSide) -> Difference {
    let waiting = waiting_units(stock, ledger);
    let held: u64 = waiting.values().sum();
    // Of these Redis has not heard yet; they must not stand in for others that the ledger has lost.
    let decided =
        stock.holds.values().filter(|h| ledger.confirmed_holds.contains(&h.reservation_id));
    let decided: u64 = decided.map(|hold| hold.quantity.units()).sum();
    Difference {
        units: signed(ledger.available) - signed(stock.available + stock.moving) - signed(held),
        buyers: total_differences(&stock.totals, &ledger.totals, &waiting),
        ledger_behind: (stock.confirmed_units + decided).saturating_sub(ledger.confirmed_units),
    }
}

/// Units of each buyer that are held and not confirmed under their own reservation ids.
pub fn waiting_units(stock: &StockSide, ledger: &LedgerSide) -> HashMap<BuyerId, u64> {
    let mut waiting = HashMap::new();
    for hold in stock.holds.values() {
        if !ledger.confirmed_holds.contains(&hold.reservation_id) {
            *waiting.entry(hold.buyer.clone()).or_insert(0) += hold.quantity.units();
        }
    }
    waiting
}

/// What has to be added to the totals of buyers; those that agree are left out. In the order of
/// their ids.
pub fn total_differences(
    totals: &HashMap<BuyerId, u64>,
    bought: &HashMap<BuyerId, u64>,
    waiting: &HashMap<BuyerId, u64>,
) -> Vec<(BuyerId, i64)> {
    let of = |units: &HashMap<BuyerId, u64>, buyer| units.get(buyer).copied().unwrap_or(0);
    let mut differences: Vec<_> = totals
        .iter()
        .map(|(buyer, total)| {
            let expected = of(bought, buyer) + of(waiting, buyer);
            (buyer.clone(), signed(expected) - signed(*total))
        })
        .filter(|(_, units)| *units != 0)
        .collect();
    differences.sort();
    differences
}

/// Divides a correction among buckets: what is taken is taken where it is, and what is missing
/// everywhere is left to the first.
pub fn spread(units: i64, available: &[u64]) -> Vec<i64> {
    let mut shares = vec![0; available.len()];
    let mut left = units;
    for (share, available) in shares.iter_mut().zip(available) {
        let taken = left.max(-signed(*available)).min(0);
        *share = taken;
        left -= taken;
    }
    if let Some(first) = shares.first_mut() {
        *first += left;
    }
    shares
}

/// Units are far below what an `i64` holds.
fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(buyer: &str, units: u64) -> OpenHold {
        let (buyer, item) = (buyer.parse().expect("a buyer"), "shoe".parse().expect("an item"));
        OpenHold {
            request_id: RequestId::derive(&buyer, &item, &"1".parse().expect("a key")),
            reservation_id: ReservationId::mint(),
            buyer,
            quantity: Quantity::new(units).expect("units"),
            reserved_at: UnixMillis(0),
        }
    }

    /// Ten units: ann bought 2, bob holds 3, five are left, one of them on its way to another bucket.
    fn books() -> (StockSide, LedgerSide) {
        let held = hold("bob", 3);
        let stock = StockSide {
            available: 4,
            moving: 1,
            confirmed_units: 2,
            totals: HashMap::from([("ann".parse().expect("a buyer"), 2), (held.buyer.clone(), 3)]),
            holds: HashMap::from([(held.reservation_id, held)]),
        };
        let ledger = LedgerSide {
            available: 8,
            confirmed_units: 2,
            is_limited: true,
            totals: HashMap::from([("ann".parse().expect("a buyer"), 2)]),
            confirmed_holds: HashSet::new(),
        };
        (stock, ledger)
    }

    #[test]
    fn holds_in_flight_are_no_difference() {
        let (stock, ledger) = books();
        assert!(difference(&stock, &ledger).is_none());
    }

    #[test]
    fn a_hold_that_the_ledger_has_confirmed_meanwhile_is_no_difference() {
        let (stock, mut ledger) = books();
        let hold = stock.holds.values().next().expect("a hold");
        ledger.available -= 3;
        ledger.confirmed_units += 3;
        ledger.confirmed_holds.insert(hold.reservation_id);
        ledger.totals.insert(hold.buyer.clone(), 3);
        assert!(difference(&stock, &ledger).is_none());
    }

    #[test]
    fn too_few_and_too_many_units_differ_by_their_number() {
        let (stock, ledger) = books();
        let too_many = StockSide { available: stock.available + 7, ..stock.clone() };
        assert_eq!(difference(&too_many, &ledger).units, -7);
        let too_few = LedgerSide { available: ledger.available + 7, ..ledger };
        assert_eq!(difference(&stock, &too_few).units, 7);
    }

    #[test]
    fn a_buyer_who_is_counted_wrong_differs_alone() {
        let (mut stock, ledger) = books();
        let bob: BuyerId = "bob".parse().expect("a buyer");
        stock.totals.insert(bob.clone(), 10);
        let found = difference(&stock, &ledger);
        assert_eq!((found.units, found.buyers), (0, vec![(bob, -7)]));
    }

    #[test]
    fn a_correction_takes_units_where_they_are() {
        assert_eq!(spread(7, &[1, 2]), [7, 0]);
        assert_eq!(spread(-2, &[1, 2]), [-1, -1]);
        assert_eq!(spread(-7, &[1, 2]), [-5, -2], "the first says what is left over");
        assert_eq!(spread(0, &[1]), [0]);
    }

    #[test]
    fn fewer_confirmed_units_in_the_ledger_mean_that_it_went_back() {
        let (stock, ledger) = books();
        let back = LedgerSide { confirmed_units: 0, available: 10, ..ledger };
        let found = difference(&stock, &back);
        assert_eq!((found.ledger_behind, found.units), (2, 2));
    }

    #[test]
    fn what_redis_has_not_heard_of_yet_hides_no_order_that_the_ledger_has_lost() {
        let (stock, _) = books();
        let hold = stock.holds.values().next().expect("a hold");
        // Ann's two are lost, bob's three are confirmed since.
        let back = LedgerSide {
            available: 7,
            confirmed_units: 3,
            is_limited: true,
            confirmed_holds: HashSet::from([hold.reservation_id]),
            totals: HashMap::from([(hold.buyer.clone(), 3)]),
        };
        let found = difference(&stock, &back);
        assert_eq!((found.ledger_behind, found.units), (2, 2));
    }
}
