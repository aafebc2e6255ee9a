//! What befalls the backends: the broker loses and repeats, records expire, Redis forgets.

use crate::errand::Errand;
use crate::scenario::{Fault, Loss};
use crate::state::{Class, Hold, HoldState, REQUESTS, Redis, Reservation};
use crate::step::Steps;
use crate::stock::seen;

pub fn steps(at: &mut Steps<'_>) {
    for errand in at.from.bag.distinct() {
        broker(at, errand);
    }
    for request in 0..REQUESTS {
        record_expires(at, request);
        stray_compensation(at, request);
    }
    match at.scenario.loss {
        Loss::Nothing => {}
        Loss::Everything => flush(at),
        Loss::Latest => fail_over(at),
    }
}

fn broker(at: &mut Steps<'_>, errand: Errand) {
    let (Errand::Message(of) | Errand::Compensation(of)) = errand else { return };
    let mut lost = at.from;
    lost.bag.remove(errand);
    at.fault(Fault::Lose, "the broker loses a message", Some(of), lost);
    if at.from.bag.has_room(errand) {
        let mut twice = at.from;
        twice.bag.add(errand);
        at.fault(Fault::Duplicate, "a message is there twice", Some(of), twice);
    }
}

/// A settled record lives a day beyond the sale. By then no call of ingress is under way, but a
/// message may still wait, and a prolonged sale may still sell.
fn record_expires(at: &mut Steps<'_>, request: usize) {
    let hold = at.from.redis.holds[request];
    let settled = matches!(hold.state, HoldState::Confirmed | HoldState::Restored);
    let in_ingress = at.from.bag.any(|errand| {
        matches!(errand, Errand::Asking(of) | Errand::Publishing(of) if of.index() == request)
    });
    if settled && !in_ingress {
        let mut next = at.from;
        next.redis.holds[request] = Hold::default();
        let of = Reservation::new(request, hold.number);
        at.fault(Fault::Forget, "the settled record expires", Some(of), next);
    }
}

/// A compensation that overtakes its order: from an operator's hand, or of an order that a ledger
/// forgot.
fn stray_compensation(at: &mut Steps<'_>, request: usize) {
    let hold = seen(&at.from.redis, request, at.protections);
    let of = Reservation::new(request, hold.number);
    let undecided = at.from.ledger.orders[request].class == Class::Undecided;
    if hold.state == HoldState::Held && undecided {
        let mut next = at.from;
        next.bag.publish(Errand::Compensation(of));
        at.fault(Fault::Stray, "a compensation overtakes the order", Some(of), next);
    }
}

/// FLUSHALL, or a server that comes back empty.
fn flush(at: &mut Steps<'_>) {
    if at.from.losses > 0 {
        let mut next = at.from;
        next.losses -= 1;
        next.redis = Redis { stamp: next.server, ..Redis::default() };
        at.crash("Redis loses everything", None, next);
    }
}

/// The other server takes over with what it had when copying stopped; what this one had is kept, so
/// that a second failover brings it back.
fn fail_over(at: &mut Steps<'_>) {
    if at.from.losses == 0 {
        return;
    }
    let mut next = at.from;
    if at.from.other_lags {
        next.losses -= 1;
        next.server += 1;
        std::mem::swap(&mut next.redis, &mut next.other);
        if next.losses == 0 {
            // Nobody goes back to it: one state instead of many.
            next.other = Redis::default();
            next.other_lags = false;
        }
        at.crash("the other server takes over with what it had", None, next);
    } else {
        next.other = next.redis;
        next.other_lags = true;
        at.chance("copying to the other server stops", None, next);
    }
}
