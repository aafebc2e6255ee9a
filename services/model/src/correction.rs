//! Corrections of stock: freeze, read Redis, read the ledger, correct. A run may stall for as long
//! as it likes; then its freeze lapses and another run may begin.

use crate::protections::Protection::{CorrectByDifference, CorrectUnderFreeze, RedisBeforeLedger};
use crate::protections::Protections;
use crate::scenario::Scenario;
use crate::state::{HoldState, REQUESTS, Redis, Run, State, signed};
use crate::step::Steps;
use crate::stock::seen;

const FROZEN_BY: [u8; 2] = [1, 2];

pub fn steps(at: &mut Steps<'_>) {
    for slot in 0..at.scenario.corrections {
        match at.from.runs[slot] {
            Run::Idle => begin(at, slot),
            run => go_on(at, slot, run),
        }
        lapse(at, slot);
    }
}

/// Freeze and snapshot are one step: only settling can come between, and it may as well come
/// before.
fn begin(at: &mut Steps<'_>, slot: usize) {
    let redis = &at.from.redis;
    if redis.freeze != 0 || redis.epoch == 0 || redis.epoch != at.from.ledger.epoch {
        return;
    }
    let mut next = at.from;
    next.redis.freeze = FROZEN_BY[slot];
    // A token is never used twice: the copy of an earlier freeze is not this one.
    forget(&mut next.other, slot);
    next.runs[slot] = if at.has(RedisBeforeLedger) {
        snapshot(&next, at.protections)
    } else {
        Run::Read { available: next.ledger.available, confirmed: confirmed(&next) }
    };
    at.work("a correction begins: it freezes and reads", None, next);
}

fn go_on(at: &mut Steps<'_>, slot: usize, run: Run) {
    let mut next = at.from;
    next.runs[slot] = Run::Idle;
    at.crash("a correction dies, its freeze stays", None, next);

    let what = match run {
        Run::Idle => return,
        Run::Snapped { available, held } => {
            let (ledger, confirmed) = (at.from.ledger.available, confirmed(&at.from));
            let value = value(at, ledger, confirmed, available, held);
            next.runs[slot] = Run::Ready { value };
            "the correction reads the ledger"
        }
        Run::Read { available: ledger, confirmed } => {
            let Run::Snapped { available, held } = snapshot(&at.from, at.protections) else {
                return;
            };
            let value = value(at, ledger, confirmed, available, held);
            next.runs[slot] = Run::Ready { value };
            "the correction reads Redis, after the ledger"
        }
        Run::Ready { value } => {
            let mine = at.from.redis.freeze == FROZEN_BY[slot];
            if mine || !at.has(CorrectUnderFreeze) {
                apply(&mut next, at, value);
                forget(&mut next.redis, slot);
                "the correction corrects, stamps and thaws"
            } else {
                "the correction comes too late and is refused"
            }
        }
    };
    at.work(what, None, next);
}

/// Time goes by: the lease and the freeze end together.
fn lapse(at: &mut Steps<'_>, slot: usize) {
    if at.from.redis.freeze == FROZEN_BY[slot] {
        let mut next = at.from;
        forget(&mut next.redis, slot);
        forget(&mut next.other, slot);
        at.work("the freeze lapses", None, next);
    }
}

fn forget(redis: &mut Redis, slot: usize) {
    if redis.freeze == FROZEN_BY[slot] {
        redis.freeze = 0;
    }
}

fn snapshot(state: &State, protections: Protections) -> Run {
    let mut held = [0; REQUESTS];
    for (request, number) in held.iter_mut().enumerate() {
        let hold = seen(&state.redis, request, protections);
        if hold.state == HoldState::Held {
            *number = hold.number;
        }
    }
    Run::Snapped { available: state.redis.available, held }
}

/// The reservation that each confirmed order names, 0 for none.
fn confirmed(state: &State) -> [u8; REQUESTS] {
    let mut numbers = [0; REQUESTS];
    for (request, number) in numbers.iter_mut().enumerate() {
        let order = state.ledger.orders[request];
        if state.ledger.has_sold(request, order.number) {
            *number = order.number;
        }
    }
    numbers
}

/// The difference, or without that rule the value that Redis should have.
fn value(
    at: &Steps<'_>,
    ledger: i8,
    confirmed: [u8; REQUESTS],
    available: i8,
    held: [u8; REQUESTS],
) -> i8 {
    let should = ledger - units_held(at.scenario, held, confirmed);
    if at.has(CorrectByDifference) { should - available } else { should }
}

/// Units of holds that the ledger has not confirmed under the hold's own reservation id.
pub fn units_held(scenario: &Scenario, held: [u8; REQUESTS], confirmed: [u8; REQUESTS]) -> i8 {
    (0..REQUESTS)
        .filter(|&request| held[request] != 0 && held[request] != confirmed[request])
        .map(|request| signed(scenario.units(request)))
        .sum()
}

/// Never below nothing; what is left over is reported, and stays a known difference.
fn apply(next: &mut State, at: &Steps<'_>, value: i8) {
    let before = next.redis.available;
    let wanted = if at.has(CorrectByDifference) { before + value } else { value };
    next.redis.available = wanted.max(0);
    next.redis.stamp = next.server;
    if at.scenario.conserves() {
        next.drift = next.redis.available - wanted;
    }
}

/// What Redis sells and holds, less what the ledger has left: 0 while nothing was lost.
pub fn difference(state: &State, scenario: &Scenario, protections: Protections) -> i8 {
    match snapshot(state, protections) {
        Run::Snapped { available, held } => {
            available + units_held(scenario, held, confirmed(state)) - state.ledger.available
        }
        _ => 0,
    }
}
