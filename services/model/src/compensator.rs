//! Who gives stock back after asking the ledger: the compensator, and an operator who discards a
//! parked letter.

use crate::errand::Errand;
use crate::ledger::find_or_expire;
use crate::protections::Protection::{CompensatorRefuses, ExpireBeforeRestore};
use crate::scenario::Fault;
use crate::state::{Class, Reservation, State};
use crate::step::Steps;
use crate::stock::restore;

/// The ledger's word on a request whose stock is asked back.
enum Word {
    /// It was undecided and is expired now.
    Expired(State),
    Restore(Class),
    /// The ledger has sold exactly this reservation.
    Refuse,
}

pub fn steps(at: &mut Steps<'_>) {
    for errand in at.from.bag.distinct() {
        match errand {
            Errand::Compensation(of) => compensate(at, of),
            Errand::Parked(of) => {
                replay(at, of);
                discard(at, of);
            }
            _ => {}
        }
    }
}

fn ask(at: &Steps<'_>, of: Reservation) -> Word {
    let mut asked = at.from;
    let undecided = at.from.ledger.orders[of.index()].class == Class::Undecided;
    if undecided && !at.has(ExpireBeforeRestore) {
        return Word::Restore(Class::Expired);
    }
    let order = find_or_expire(&mut asked, of);
    let sold = asked.ledger.has_sold(of.index(), of.number);
    if undecided {
        Word::Expired(asked)
    } else if sold && at.has(CompensatorRefuses) {
        Word::Refuse
    } else {
        Word::Restore(order.class)
    }
}

fn compensate(at: &mut Steps<'_>, of: Reservation) {
    let mut next = at.from;
    next.bag.remove(Errand::Compensation(of));
    match ask(at, of) {
        Word::Expired(asked) => at.work("the compensator expires the request", Some(of), asked),
        Word::Refuse => at.work("the compensator refuses", Some(of), next),
        Word::Restore(verdict) => {
            restore(&mut next, at.scenario, at.protections, of, verdict);
            at.work("the compensator restores and acknowledges", Some(of), next);

            let mut again = at.from;
            restore(&mut again, at.scenario, at.protections, of, verdict);
            let what = "the compensator restores and dies before it acknowledges";
            at.fault(Fault::Crash, what, Some(of), again);
        }
    }
}

fn replay(at: &mut Steps<'_>, of: Reservation) {
    let mut next = at.from;
    next.bag.replace(Errand::Parked(of), Errand::Message(of));
    at.work("an operator replays the letter", Some(of), next);
}

fn discard(at: &mut Steps<'_>, of: Reservation) {
    let mut next = at.from;
    next.bag.remove(Errand::Parked(of));
    match ask(at, of) {
        Word::Expired(asked) => {
            at.work("an operator discards the letter: the request is expired", Some(of), asked);
        }
        Word::Refuse => at.work("an operator discards a sold letter", Some(of), next),
        Word::Restore(verdict) => {
            restore(&mut next, at.scenario, at.protections, of, verdict);
            at.work("the discard restores and removes the letter", Some(of), next);
        }
    }
}
