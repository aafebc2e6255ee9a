//! Ingress: reserve, publish, answer. Each request runs in a task that may die between any two.

use crate::errand::Errand;
use crate::protections::Protection::{HoldStaysOnUnknown, ReplayAfterConfirm, RepublishStoredId};
use crate::scenario::Fault;
use crate::state::{Class, ENOUGH_FRESH, REQUESTS, Reservation, State};
use crate::step::Steps;
use crate::stock::{self, Reserved};

pub fn steps(at: &mut Steps<'_>) {
    for request in 0..REQUESTS {
        if at.from.tries[request] > 0 {
            post(at, request);
        }
    }
    for errand in at.from.bag.distinct() {
        match errand {
            Errand::Asking(of) => ask_again(at, of),
            Errand::Publishing(of) => publish(at, of),
            _ => {}
        }
    }
}

/// A buyer asks, for the first time or again with the same key. An answer that changes nothing (a
/// refusal, a final state) is no step; what a record says is compared with the ledger by the laws.
fn post(at: &mut Steps<'_>, request: usize) {
    let mut next = at.from;
    next.tries[request] -= 1;
    let unspent = next;
    let of = next.mint(request);
    match stock::reserve(&mut next, at.scenario, at.protections, of) {
        Reserved::Held => {
            let mut lost = next;
            next.bag.add(Errand::Publishing(of));
            at.chance("the buyer asks, ingress takes stock", Some(of), next);
            lost.bag.add(Errand::Asking(of));
            let what = "the buyer asks, ingress takes stock, the reply of Redis is lost";
            at.fault(Fault::LostReply, what, Some(of), lost);
        }
        Reserved::Known(stored) => repeat(at, unspent, stored),
        Reserved::Settled | Reserved::Refused => {}
    }
}

/// The hold is there and not settled: it is published again.
fn repeat(at: &mut Steps<'_>, mut next: State, stored: Reservation) {
    let fresh = !at.has(RepublishStoredId) && next.minted[stored.index()] < ENOUGH_FRESH;
    let of = if fresh { next.mint(stored.index()) } else { stored };
    if !at.has(ReplayAfterConfirm) {
        next.told[stored.index()] = true;
    }
    next.bag.add(Errand::Publishing(of));
    at.chance("the buyer repeats, ingress finds the hold", Some(of), next);
}

/// The script says under the same reservation id what it did, or does it now.
fn ask_again(at: &mut Steps<'_>, of: Reservation) {
    let mut next = at.from;
    next.bag.remove(Errand::Asking(of));
    at.crash("ingress dies before it asks again", Some(of), next);
    match stock::reserve(&mut next, at.scenario, at.protections, of) {
        Reserved::Held => next.bag.add(Errand::Publishing(of)),
        Reserved::Known(stored) => next.bag.add(Errand::Publishing(stored)),
        Reserved::Settled | Reserved::Refused => {}
    }
    at.work("ingress asks Redis again", Some(of), next);
}

/// Whatever becomes of a publish, the hold stays. A message may be late: this step waits as long
/// as it likes. Without the rule, ingress takes an unknown outcome for a failure.
fn publish(at: &mut Steps<'_>, of: Reservation) {
    let mut dropped = at.from;
    dropped.bag.remove(Errand::Publishing(of));
    at.crash("ingress dies before it publishes", Some(of), dropped);
    if !dropped.bag.has_room(Errand::Message(of)) {
        return;
    }
    let mut sent = dropped;
    sent.bag.add(Errand::Message(of));

    let mut told = sent;
    told.told[of.index()] = true;
    at.work("ingress publishes, the broker confirms, the buyer is told 202", Some(of), told);

    if !at.has(HoldStaysOnUnknown) {
        for unknown in [&mut sent, &mut dropped] {
            stock::restore(unknown, at.scenario, at.protections, of, Class::Expired);
        }
        at.fault(Fault::Unknown, "the publish is lost, its outcome unknown", Some(of), dropped);
    }
    let what = "the publish arrives, its confirm does not: outcome unknown";
    at.fault(Fault::Unknown, what, Some(of), sent);
}
