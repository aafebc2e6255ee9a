//! A step from one moment to the next, with its name and who is to blame for it.

use std::fmt;

use crate::protections::{Protection, Protections};
use crate::scenario::{Fault, Scenario};
use crate::state::{Reservation, State};

/// Who makes a step happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A buyer asks, or the environment does something that nobody may rely on.
    Chance,
    /// The line works. Only such steps may be needed to finish what was begun.
    Work,
    /// Something fails.
    Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub kind: Kind,
    pub what: &'static str,
    pub of: Option<Reservation>,
}

/// Gathers the steps that can be taken from a state.
pub struct Steps<'a> {
    pub from: State,
    pub scenario: &'a Scenario,
    pub protections: Protections,
    pub found: Vec<(Step, State)>,
}

impl Steps<'_> {
    pub fn has(&self, protection: Protection) -> bool {
        self.protections.has(protection)
    }

    pub fn work(&mut self, what: &'static str, of: Option<Reservation>, next: State) {
        self.found.push((Step { kind: Kind::Work, what, of }, next));
    }

    pub fn chance(&mut self, what: &'static str, of: Option<Reservation>, next: State) {
        self.found.push((Step { kind: Kind::Chance, what, of }, next));
    }

    /// A crash that forgets what a process knew, and nothing else: it leads back to a state that
    /// was there before, so it costs nothing and may happen as often as it likes.
    pub fn crash(&mut self, what: &'static str, of: Option<Reservation>, next: State) {
        self.found.push((Step { kind: Kind::Fault, what, of }, next));
    }

    /// A fault that makes something new; a scenario says which kinds may happen, and how often.
    pub fn fault(
        &mut self,
        fault: Fault,
        what: &'static str,
        of: Option<Reservation>,
        mut next: State,
    ) {
        if self.scenario.faults.contains(&fault) && self.from.faults > 0 {
            next.faults -= 1;
            self.found.push((Step { kind: Kind::Fault, what, of }, next));
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.kind {
            Kind::Chance => ' ',
            Kind::Work => '·',
            Kind::Fault => '!',
        };
        write!(f, "{mark} ")?;
        if let Some(of) = self.of {
            write!(f, "{of}: ")?;
        }
        f.write_str(self.what)
    }
}

/// `a1`: the first reservation of the first request.
impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", char::from(b'a' + self.request), self.number)
    }
}
