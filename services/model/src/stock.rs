//! What the scripts do to Redis. Each is one atomic step, as in the real one.

use crate::laws::Law;
use crate::protections::Protection::{
    ConfirmComparesIds, IncarnationGate, OldEpochForgotten, RestoreComparesIds, RestoreOnlyHeld,
};
use crate::protections::Protections;
use crate::scenario::Scenario;
use crate::state::{Class, Hold, HoldState, Redis, Reservation, State};

/// What `reserve` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// Held under the caller's reservation id, new or asked for again.
    Held,
    /// The request is held under another reservation id.
    Known(Reservation),
    /// The request is settled; the buyer is told so.
    Settled,
    /// Nothing was taken, nothing is stored.
    Refused,
}

/// The record of a request as scripts see it: a hold that took stock of an earlier epoch is not
/// there.
pub fn seen(redis: &Redis, request: usize, protections: Protections) -> Hold {
    let hold = redis.holds[request];
    let old = hold.state == HoldState::Held && hold.epoch != redis.epoch;
    if old && protections.has(OldEpochForgotten) { Hold::default() } else { hold }
}

pub fn reserve(
    state: &mut State,
    scenario: &Scenario,
    protections: Protections,
    of: Reservation,
) -> Reserved {
    let (server, redis) = (state.server, &mut state.redis);
    let request = of.index();
    if protections.has(IncarnationGate) && redis.stamp != server {
        return Reserved::Refused;
    }
    let known = seen(redis, request, protections);
    match known.state {
        HoldState::Held if known.number == of.number => return Reserved::Held,
        HoldState::Held => return Reserved::Known(Reservation { number: known.number, ..of }),
        HoldState::Confirmed | HoldState::Restored => return Reserved::Settled,
        HoldState::None => {}
    }
    let (units, buyer) = (scenario.units(request), scenario.buyer(request));
    let over = scenario.limit.is_some_and(|limit| redis.totals[buyer] + units > limit);
    if redis.epoch == 0 || redis.freeze != 0 || over || redis.available < units.cast_signed() {
        return Reserved::Refused;
    }
    redis.take(units);
    if scenario.limit.is_some() {
        redis.totals[buyer] += units;
    }
    redis.holds[request] = Hold {
        state: HoldState::Held,
        verdict: Class::Undecided,
        number: of.number,
        epoch: redis.epoch,
    };
    Reserved::Held
}

/// Makes a hold final. An unseen hold is written down, no stock moves.
pub fn confirm(state: &mut State, protections: Protections, of: Reservation) {
    let redis = &mut state.redis;
    let hold = seen(redis, of.index(), protections);
    let mine = hold.number == of.number || !protections.has(ConfirmComparesIds);
    redis.holds[of.index()] = match hold.state {
        HoldState::None => Hold {
            state: HoldState::Confirmed,
            verdict: Class::Confirmed,
            number: of.number,
            epoch: 0,
        },
        HoldState::Held if mine => {
            Hold { state: HoldState::Confirmed, verdict: Class::Confirmed, epoch: 0, ..hold }
        }
        _ => return,
    };
}

/// Gives a hold's units back. An unseen hold gets its verdict as a tombstone, no stock moves.
pub fn restore(
    state: &mut State,
    scenario: &Scenario,
    protections: Protections,
    of: Reservation,
    verdict: Class,
) {
    let request = of.index();
    let redis = &mut state.redis;
    let hold = seen(redis, request, protections);
    let settled = Hold { state: HoldState::Restored, verdict, number: of.number, epoch: 0 };
    if hold.state == HoldState::None {
        redis.holds[request] = settled;
        return;
    }
    let mine = hold.number == of.number || !protections.has(RestoreComparesIds);
    let may = hold.state == HoldState::Held || !protections.has(RestoreOnlyHeld);
    if !mine || !may {
        return;
    }
    redis.holds[request] = Hold { number: hold.number, ..settled };
    redis.give(scenario.units(request));
    if scenario.limit.is_some() {
        let total = &mut redis.totals[scenario.buyer(request)];
        *total = total.saturating_sub(scenario.units(request));
    }
    let bit = Reservation { number: hold.number, ..of }.bit();
    if redis.given_back & bit != 0 {
        state.breach = Some(Law::RestoredTwice);
    }
    redis.given_back |= bit;
}
