//! What each rule is for: the scenario and the law that show it best.

use crate::laws::Law;
use crate::protections::{Protection, Protections};
use crate::scenario::Scenario;
use crate::scenarios::{
    CORRECTED, DRAINED, EMPTIED, FAILOVER, FORGOTTEN, LAST_UNIT, LETTERS, LIMIT, LIMIT_EMPTIED,
};
use crate::search::{Outcome, Wrong, search_for};

/// A rule, or two of which each is dispensable alone, and the history that goes wrong without.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    pub without: &'static [Protection],
    pub scenario: &'static Scenario,
    pub wrong: Wrong,
}

impl Shown {
    pub fn search(&self) -> Outcome {
        let off = self.without.iter().fold(Protections::ALL, |rest, rule| rest.without(*rule));
        let only = match self.wrong {
            Wrong::Broken(law) => Some(law),
            Wrong::Stuck => None,
        };
        search_for(self.scenario, off, only)
    }
}

const fn shown(without: &'static [Protection], scenario: &'static Scenario, law: Law) -> Shown {
    Shown { without, scenario, wrong: Wrong::Broken(law) }
}

const fn stuck(without: &'static [Protection], scenario: &'static Scenario) -> Shown {
    Shown { without, scenario, wrong: Wrong::Stuck }
}

pub const ALL: &[Shown] = &[
    shown(&[Protection::ExpireBeforeRestore], &LETTERS, Law::SoldReservationRestored),
    shown(&[Protection::TombstoneTest], &LETTERS, Law::SoldReservationRestored),
    shown(&[Protection::HoldStaysOnUnknown], &LAST_UNIT, Law::SoldReservationRestored),
    shown(&[Protection::RepublishStoredId], &LAST_UNIT, Law::BooksDiffer),
    shown(&[Protection::RestoreOnlyHeld], &LETTERS, Law::RestoredTwice),
    shown(&[Protection::SurplusIsNotRepeated], &FORGOTTEN, Law::BooksDiffer),
    shown(&[Protection::SurplusIsNotNew], &FORGOTTEN, Law::SoldTwice),
    shown(&[Protection::ReconcilerComparesIds], &FORGOTTEN, Law::BooksDiffer),
    shown(&[Protection::ReplayAfterConfirm], &DRAINED, Law::PromiseLost),
    shown(&[Protection::CorrectByDifference], &CORRECTED, Law::BooksDiffer),
    shown(&[Protection::CorrectUnderFreeze], &CORRECTED, Law::BooksDiffer),
    shown(&[Protection::RedisBeforeLedger], &CORRECTED, Law::BooksDiffer),
    shown(&[Protection::CompensatorRefuses], &LETTERS, Law::SoldReservationRestored),
    shown(&[Protection::RestoreComparesIds], &FAILOVER, Law::SoldReservationRestored),
    shown(&[Protection::ConfirmComparesIds], &FORGOTTEN, Law::BooksDiffer),
    shown(&[Protection::LedgerJudgesStock], &EMPTIED, Law::Oversold),
    shown(&[Protection::LedgerJudgesLimit], &LIMIT_EMPTIED, Law::OverTheLimit),
    stuck(&[Protection::LookSettles], &LIMIT),
    stuck(&[Protection::DuplicateRepeats, Protection::LookSettles], &DRAINED),
];
