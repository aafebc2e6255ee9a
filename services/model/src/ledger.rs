//! What the ledger decides. Each is one transaction, as in the real one.

use crate::laws::Law;
use crate::protections::Protection::{
    DuplicateRepeats, LedgerJudgesLimit, LedgerJudgesStock, SurplusIsNotNew, SurplusIsNotRepeated,
    TombstoneTest,
};
use crate::protections::Protections;
use crate::scenario::Scenario;
use crate::state::{Class, Order, Reservation, State, signed};

/// What has to follow from a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aftermath {
    Confirm,
    Compensate,
    /// Only the acknowledgement.
    Nothing,
}

/// Decides a reservation, or finds its decision; says what has to follow.
pub fn commit(
    state: &mut State,
    scenario: &Scenario,
    protections: Protections,
    of: Reservation,
) -> Aftermath {
    let order = state.ledger.orders[of.index()];
    let ignored = order.class == Class::Expired && !protections.has(TombstoneTest);
    if order.class == Class::Undecided || ignored {
        return decide(state, scenario, protections, of);
    }
    if order.number != of.number {
        if !protections.has(SurplusIsNotNew) {
            return decide(state, scenario, protections, of);
        }
        if !protections.has(SurplusIsNotRepeated) {
            return aftermath(order.class);
        }
        return Aftermath::Compensate;
    }
    if protections.has(DuplicateRepeats) { aftermath(order.class) } else { Aftermath::Nothing }
}

fn decide(
    state: &mut State,
    scenario: &Scenario,
    protections: Protections,
    of: Reservation,
) -> Aftermath {
    let units = scenario.units(of.index());
    let bought = scenario.bought(&state.ledger, scenario.buyer(of.index()));
    let over = scenario.limit.is_some_and(|limit| bought + units > limit);
    let short = state.ledger.available < signed(units);
    let refused = (over && protections.has(LedgerJudgesLimit))
        || (short && protections.has(LedgerJudgesStock));
    let class = if refused { Class::Rejected } else { Class::Confirmed };
    if class == Class::Confirmed {
        state.ledger.available -= signed(units);
        state.ledger.sold[of.index()] += units;
    }
    let before = state.ledger.orders[of.index()].class;
    if before != Class::Undecided && before != class {
        state.breach = Some(Law::FinalStateChanged);
    }
    state.ledger.orders[of.index()] = Order { class, number: of.number };
    aftermath(class)
}

fn aftermath(class: Class) -> Aftermath {
    if class == Class::Confirmed { Aftermath::Confirm } else { Aftermath::Compensate }
}

/// The order of a request; an undecided one is expired first.
pub fn find_or_expire(state: &mut State, of: Reservation) -> Order {
    let order = &mut state.ledger.orders[of.index()];
    if order.class == Class::Undecided {
        *order = Order { class: Class::Expired, number: of.number };
    }
    *order
}
