//! What must hold in every state, and what "settled" means.

use std::fmt;

use crate::correction::difference;
use crate::errand::Errand;
use crate::protections::Protections;
use crate::scenario::Scenario;
use crate::state::{BUYERS, Class, HoldState, REQUESTS, Run, State, signed};
use crate::stock::seen;

/// A sentence of the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    Oversold,
    SoldTwice,
    OverTheLimit,
    RestoredTwice,
    SoldReservationRestored,
    FinalStateChanged,
    PromiseLost,
    PromiseBroken,
    BooksDiffer,
    TotalsDiffer,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Oversold => "more units are confirmed than there are",
            Self::SoldTwice => "one request has taken stock off the ledger twice",
            Self::OverTheLimit => "a buyer has more than the limit",
            Self::RestoredTwice => "one reservation gave its units back twice",
            Self::SoldReservationRestored => {
                "the stock of a sold reservation went back: its unit is on sale again"
            }
            Self::FinalStateChanged => "a final state is not the ledger's, or changed",
            Self::PromiseLost => "nothing leads on from a 202: no order, no message, no hold",
            Self::PromiseBroken => "a buyer who was told 202 is rejected",
            Self::BooksDiffer => "Redis sells and holds other units than the ledger has left",
            Self::TotalsDiffer => "a buyer's total in Redis is not what the buyer holds and has",
        })
    }
}

/// The laws that a state breaks; none, if all is well.
pub fn broken(state: &State, scenario: &Scenario, protections: Protections) -> Vec<Law> {
    let mut broken: Vec<Law> = state.breach.into_iter().collect();
    in_the_ledger(state, scenario, &mut broken);
    for request in 0..REQUESTS {
        between_both(state, scenario, protections, request, &mut broken);
    }
    books(state, scenario, protections, &mut broken);
    broken
}

fn in_the_ledger(state: &State, scenario: &Scenario, broken: &mut Vec<Law>) {
    let ledger = &state.ledger;
    let sold: u8 = ledger.sold.iter().sum();
    let over = |buyer| scenario.limit.is_some_and(|limit| scenario.bought(ledger, buyer) > limit);
    if sold > scenario.total || signed(scenario.total) - signed(sold) != ledger.available {
        broken.push(Law::Oversold);
    }
    if (0..REQUESTS).any(|request| ledger.sold[request] > scenario.units(request)) {
        broken.push(Law::SoldTwice);
    }
    if (0..BUYERS).any(over) {
        broken.push(Law::OverTheLimit);
    }
}

/// What the record of a request, its order and its buyer were told.
fn between_both(
    state: &State,
    scenario: &Scenario,
    protections: Protections,
    request: usize,
    broken: &mut Vec<Law>,
) {
    let (hold, order) = (state.redis.holds[request], state.ledger.orders[request]);
    let says = match hold.state {
        HoldState::None | HoldState::Held => Class::Undecided,
        HoldState::Confirmed => Class::Confirmed,
        HoldState::Restored => hold.verdict,
    };
    if hold.state == HoldState::Restored && state.ledger.has_sold(request, hold.number) {
        broken.push(Law::SoldReservationRestored);
    }
    if says != Class::Undecided && order.class != Class::Undecided && says != order.class {
        broken.push(Law::FinalStateChanged);
    }
    if state.told[request] && !leads_on(state, request, protections) {
        broken.push(Law::PromiseLost);
    }
    if scenario.promises && state.told[request] && order.class == Class::Rejected {
        broken.push(Law::PromiseBroken);
    }
}

fn leads_on(state: &State, request: usize, protections: Protections) -> bool {
    let durable = |errand: Errand| match errand {
        Errand::Message(of) | Errand::Parked(of) | Errand::Compensation(of) => {
            of.index() == request
        }
        _ => false,
    };
    state.ledger.orders[request].class != Class::Undecided
        || seen(&state.redis, request, protections).state == HoldState::Held
        || state.bag.any(durable)
}

/// Σ available + Σ held units not confirmed under their own reservation id = ledger available. It
/// applies while Redis has forgotten nothing, and again after a warm-up that waited for the queue.
fn books(state: &State, scenario: &Scenario, protections: Protections, broken: &mut Vec<Law>) {
    let live = state.redis.epoch == state.ledger.epoch;
    if !(scenario.conserves() || (scenario.drained && live)) {
        return;
    }
    if difference(state, scenario, protections) != state.drift {
        broken.push(Law::BooksDiffer);
    }
    let differs =
        |buyer| state.redis.totals[buyer] != units_of(state, scenario, protections, buyer);
    if scenario.limit.is_some() && (0..BUYERS).any(differs) {
        broken.push(Law::TotalsDiffer);
    }
}

/// What a buyer has bought, and holds beyond that.
fn units_of(state: &State, scenario: &Scenario, protections: Protections, buyer: usize) -> u8 {
    let held: u8 = (0..REQUESTS)
        .filter(|&request| scenario.buyer(request) == buyer)
        .filter(|&request| {
            let hold = seen(&state.redis, request, protections);
            hold.state == HoldState::Held && !state.ledger.has_sold(request, hold.number)
        })
        .map(|request| scenario.units(request))
        .sum();
    held + scenario.bought(&state.ledger, buyer)
}

/// Nothing is under way or held, both sides agree, every 202 has its final state.
pub fn settled(state: &State, protections: Protections) -> bool {
    let (redis, ledger) = (&state.redis, &state.ledger);
    let quiet = state.bag.is_empty()
        && state.warm.epoch == 0
        && state.runs == [Run::Idle; 2]
        && redis.freeze == 0;
    let agree = redis.epoch == ledger.epoch
        && redis.stamp == state.server
        && redis.available == ledger.available;
    let finished = |request: usize| {
        let held = seen(redis, request, protections).state == HoldState::Held;
        let decided = ledger.orders[request].class != Class::Undecided;
        !held && (decided || !state.told[request])
    };
    quiet && agree && (0..REQUESTS).all(finished)
}
