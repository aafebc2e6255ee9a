//! Warm-up: builds Redis from the ledger under a higher epoch.

use crate::errand::Errand;
use crate::scenario::Fault;
use crate::state::{BUYERS, Class, Hold, HoldState, REQUESTS, Redis, State, WarmPlan};
use crate::step::Steps;

pub fn steps(at: &mut Steps<'_>) {
    if at.from.warm.epoch == 0 {
        plan(at);
    } else {
        build(at);
    }
}

/// One ledger transaction. Waiting until the item is drained is an effort, not a rule: only some
/// scenarios do it.
fn plan(at: &mut Steps<'_>) {
    let live = at.from.redis.epoch == at.from.ledger.epoch;
    if live || (at.scenario.drained && !is_drained(&at.from)) {
        return;
    }
    let mut next = at.from;
    next.ledger.epoch += 1;
    next.warm = WarmPlan {
        epoch: next.ledger.epoch,
        available: next.ledger.available,
        orders: next.ledger.orders,
    };
    at.work("a warm-up reads the ledger", None, next);
}

/// Nothing undecided is in the queue, and no publish can still arrive: neither one of ingress nor one
/// that a reconciler decided on before the loss.
fn is_drained(state: &State) -> bool {
    !state.bag.any(|errand| match errand {
        Errand::Publishing(_) | Errand::Asking(_) | Errand::Look(_) => true,
        Errand::Message(of) => state.ledger.orders[of.index()].class == Class::Undecided,
        _ => false,
    })
}

/// All pages and the opening are one step: until a bucket is open nobody can reserve, and settling
/// in between only writes records that the pages agree with.
fn build(at: &mut Steps<'_>) {
    let plan = at.from.warm;
    let mut next = at.from;
    next.warm = WarmPlan::default();
    at.fault(Fault::Crash, "the warm-up dies half-way", None, next);
    if next.redis.epoch > plan.epoch {
        at.work("the warm-up finds a later one at work", None, next);
        return;
    }
    next.redis = Redis {
        epoch: plan.epoch,
        available: plan.available,
        // Records outlive a warm-up; held ones of the old epoch are forgotten.
        holds: next.redis.holds,
        totals: [0; BUYERS],
        stamp: next.server,
        freeze: 0,
        given_back: 0,
    };
    for request in 0..REQUESTS {
        let order = plan.orders[request];
        let state = match order.class {
            Class::Undecided => continue,
            Class::Confirmed => HoldState::Confirmed,
            Class::Rejected | Class::Expired => HoldState::Restored,
        };
        next.redis.holds[request] =
            Hold { state, verdict: order.class, number: order.number, epoch: 0 };
        if at.scenario.limit.is_some() && order.class == Class::Confirmed {
            next.redis.totals[at.scenario.buyer(request)] += at.scenario.units(request);
        }
    }
    at.work("the warm-up builds Redis and opens it", None, next);
}
