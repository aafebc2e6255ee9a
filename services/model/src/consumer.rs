//! The consumer: commit, then confirm in Redis or publish a compensation, then acknowledge.
//! There are as many consumers as messages.

use crate::errand::Errand;
use crate::ledger::{self, Aftermath};
use crate::scenario::Fault;
use crate::state::{Reservation, State};
use crate::step::Steps;
use crate::stock;

pub fn steps(at: &mut Steps<'_>) {
    for errand in at.from.bag.distinct() {
        if let Errand::Message(of) = errand {
            handle(at, of);
            park(at, of);
        }
    }
}

/// An undecided reservation is committed. A decided one, whether a moment ago or long since, is
/// followed up.
fn handle(at: &mut Steps<'_>, of: Reservation) {
    let mut committed = at.from;
    let aftermath = ledger::commit(&mut committed, at.scenario, at.protections, of);
    if committed == at.from {
        follow(at, of, aftermath);
    } else {
        at.work("a consumer commits", Some(of), committed);
    }
}

/// What follows and the acknowledgement are one step here; a crash between the two is another
/// outcome of it. Nothing can look into the gap: the message is invisible in it.
fn follow(at: &mut Steps<'_>, of: Reservation, aftermath: Aftermath) {
    let mut skipped = at.from;
    skipped.bag.remove(Errand::Message(of));
    let followed = |state: &State| {
        let mut next = *state;
        match aftermath {
            Aftermath::Confirm => stock::confirm(&mut next, at.protections, of),
            Aftermath::Compensate => next.bag.publish(Errand::Compensation(of)),
            Aftermath::Nothing => {}
        }
        next
    };
    let (done, not_acknowledged) = (followed(&skipped), followed(&at.from));
    let (what, died, without) = match aftermath {
        Aftermath::Confirm => (
            "a consumer confirms in Redis and acknowledges",
            "a consumer confirms in Redis and dies before it acknowledges",
            "Redis is away: a consumer acknowledges without confirming",
        ),
        Aftermath::Compensate => (
            "a consumer publishes a compensation and acknowledges",
            "a consumer publishes a compensation and dies before it acknowledges",
            "the compensation never reaches the broker, the consumer acknowledges",
        ),
        Aftermath::Nothing => {
            at.work("a consumer acknowledges a duplicate", Some(of), done);
            return;
        }
    };
    at.work(what, Some(of), done);
    at.fault(Fault::Crash, died, Some(of), not_acknowledged);
    at.fault(Fault::Skip, without, Some(of), skipped);
}

fn park(at: &mut Steps<'_>, of: Reservation) {
    let mut parked = at.from;
    parked.bag.replace(Errand::Message(of), Errand::Parked(of));
    at.fault(Fault::Park, "a consumer parks the message", Some(of), parked);
}
