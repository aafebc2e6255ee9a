//! The reconciler's look at overdue holds: claim, ask the ledger, finish.

use crate::errand::Errand;
use crate::protections::Protection::{LookSettles, ReconcilerComparesIds, RepublishStoredId};
use crate::state::{Class, ENOUGH_FRESH, HoldState, Order, REQUESTS, Reservation};
use crate::step::Steps;
use crate::stock::{confirm, restore, seen};

pub fn steps(at: &mut Steps<'_>) {
    if !at.scenario.reconciler {
        return;
    }
    for request in 0..REQUESTS {
        claim(at, request);
    }
    for errand in at.from.bag.distinct() {
        if let Errand::Look(of) = errand {
            look(at, of);
        }
    }
}

/// A hold is overdue whenever the clock likes. One look at a request at a time: the claim moves
/// the next one away.
fn claim(at: &mut Steps<'_>, request: usize) {
    let hold = seen(&at.from.redis, request, at.protections);
    let looked_at = |errand| matches!(errand, Errand::Look(of) if of.index() == request);
    if hold.state != HoldState::Held || at.from.bag.any(looked_at) {
        return;
    }
    let of = Reservation::new(request, hold.number);
    let mut next = at.from;
    next.bag.add(Errand::Look(of));
    at.work("the reconciler claims the overdue hold", Some(of), next);
}

/// The claim may be old: the hold that was claimed need not be there any more.
fn look(at: &mut Steps<'_>, of: Reservation) {
    let mut next = at.from;
    next.bag.remove(Errand::Look(of));
    at.crash("the reconciler dies before it acts", Some(of), next);
    let order = at.from.ledger.orders[of.index()];
    if order.class == Class::Undecided {
        publish_again(at, of);
    } else if at.has(LookSettles) {
        settle(at, of, order);
    } else {
        at.work("the reconciler leaves the hold alone", Some(of), next);
    }
}

fn publish_again(at: &mut Steps<'_>, of: Reservation) {
    let mut next = at.from;
    next.bag.remove(Errand::Look(of));
    let left_alone = [Errand::Parked(of), Errand::Message(of)];
    if at.from.bag.any(|errand| left_alone.contains(&errand)) {
        at.work("the reconciler leaves the hold alone", Some(of), next);
        return;
    }
    if at.has(RepublishStoredId) {
        next.bag.publish(Errand::Message(of));
    } else if next.minted[of.index()] < ENOUGH_FRESH {
        let fresh = next.mint(of.index());
        next.bag.publish(Errand::Message(fresh));
    }
    at.work("the reconciler publishes again", Some(of), next);
}

/// Without comparing ids, any confirmed order of the request confirms the hold.
fn settle(at: &mut Steps<'_>, of: Reservation, order: Order) {
    let mut next = at.from;
    next.bag.remove(Errand::Look(of));
    let mine = order.number == of.number || !at.has(ReconcilerComparesIds);
    if order.class == Class::Confirmed && mine {
        confirm(&mut next, at.protections, of);
        at.work("the reconciler confirms the hold", Some(of), next);
    } else {
        restore(&mut next, at.scenario, at.protections, of, order.class);
        at.work("the reconciler restores the hold", Some(of), next);
    }
}
