//! Findings in words.

use std::fmt::Write;

use crate::scenario::Scenario;
use crate::search::{Finding, Outcome, Wrong};
use crate::state::{Class, HoldState, Order, State};

/// One line for a search.
pub fn line(scenario: &Scenario, outcome: &Outcome, seconds: f64) -> String {
    let Outcome { states, steps, settled, .. } = outcome;
    format!(
        "{:<20} {states:>9} states {steps:>10} steps {settled:>7} settled {seconds:>6.1} s",
        scenario.name
    )
}

/// A history, one step a line, and what is wrong at its end.
pub fn history(scenario: &Scenario, finding: &Finding) -> String {
    let mut text = format!("{}: {}\n", scenario.name, scenario.about);
    for (number, (step, _)) in finding.trace.iter().enumerate() {
        let _ = writeln!(text, "  {:>2} {step}", number + 1);
    }
    let wrong = match finding.wrong {
        Wrong::Broken(law) => law.to_string(),
        Wrong::Stuck => "nobody can settle this any more".to_owned(),
    };
    let _ = writeln!(text, "  => {wrong}");
    if let Some((_, state)) = finding.trace.last() {
        let _ = writeln!(text, "     {}", books(state));
    }
    text
}

/// What both sides say at the end of a history.
fn books(state: &State) -> String {
    let mut text = format!("Redis: {} left", state.redis.available);
    for (request, hold) in state.redis.holds.iter().enumerate() {
        let name = name(request);
        let number = hold.number;
        let _ = match hold.state {
            HoldState::None => Ok(()),
            HoldState::Held => write!(text, ", {name}{number} held"),
            HoldState::Confirmed => write!(text, ", {name}{number} confirmed"),
            HoldState::Restored => write!(text, ", {name}{number} restored"),
        };
    }
    let _ = write!(text, "; ledger: {} left", state.ledger.available);
    for (request, Order { class, number }) in state.ledger.orders.iter().enumerate() {
        let name = name(request);
        let _ = match class {
            Class::Undecided => Ok(()),
            Class::Confirmed => write!(text, ", {name}{number} confirmed"),
            Class::Rejected => write!(text, ", {name}{number} rejected"),
            Class::Expired => write!(text, ", {name}{number} expired"),
        };
    }
    text
}

fn name(request: usize) -> char {
    char::from(b'a' + request.to_le_bytes()[0])
}
