//! What was said of one purchase, and whether it can be right.

use std::collections::HashSet;
use std::time::Instant;

use super::{Asked, Heard, Purchase};
use crate::buyer::Answer;

/// Everything that was said of one purchase, in the order of the questions.
#[derive(Default)]
pub(super) struct File {
    pub(super) heard: Vec<Heard>,
}

/// How a purchase ended, as far as was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Nobody was ever told anything.
    Unknown,
    Refused,
    /// Accepted, and not final.
    Open,
    Final(String),
}

/// The only reasons to be told *try again*.
const NOT_NOW: [&str; 4] = ["not_ready", "broker_unavailable", "unknown_outcome", "overloaded"];

impl File {
    pub(super) fn answers(&self) -> impl DoubleEndedIterator<Item = (&Heard, &Answer)> {
        self.heard.iter().filter_map(|heard| Some((heard, heard.answer.as_ref()?)))
    }

    pub(super) fn request_ids(&self) -> HashSet<&str> {
        let ids = self.answers().map(|(_, answer)| answer.text("request_id"));
        ids.filter(|id| !id.is_empty()).collect()
    }

    /// When the first word came that it was accepted.
    pub(super) fn accepted_at(&self) -> Option<Instant> {
        let accepted = |(heard, answer): (&Heard, &Answer)| {
            matches!(answer.status, 200 | 202).then_some(heard.until)
        };
        self.answers().filter_map(accepted).min()
    }

    fn finals(&self) -> impl Iterator<Item = (&Heard, &str)> {
        self.answers().filter_map(|(heard, answer)| {
            let state = answer.text("status");
            (answer.status == 200 && state != "reserved").then_some((heard, state))
        })
    }

    pub(super) fn end(&self) -> End {
        if let Some((_, state)) = self.finals().next() {
            return End::Final(state.to_owned());
        }
        if self.accepted_at().is_some() {
            return End::Open;
        }
        let refused = self.answers().any(|(_, answer)| answer.status == 409);
        if refused { End::Refused } else { End::Unknown }
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.end() == End::Final("confirmed".to_owned())
    }

    /// May it have had stock at this moment?
    pub(super) fn may_have_taken(&self, moment: Instant) -> bool {
        let asked_before =
            self.heard.iter().any(|heard| heard.asked == Asked::ToBuy && heard.at <= moment);
        asked_before && matches!(self.end(), End::Open | End::Final(_))
    }

    pub(super) fn judge(&self, purchase: &Purchase, may_expire: bool) -> Vec<String> {
        let mut wrong: Vec<String> = self
            .answers()
            .filter_map(|(heard, answer)| impossible(purchase, heard, answer))
            .collect();
        let ids = self.request_ids();
        if ids.len() > 1 {
            wrong.push(format!("one key, several requests: {ids:?}"));
        }
        if let Some(accepted_at) = self.accepted_at() {
            for (heard, answer) in self.answers().filter(|(heard, _)| heard.at > accepted_at) {
                if !matches!(answer.status, 200 | 202 | 503) {
                    wrong.push(format!("accepted, and later told {}", told(heard, answer)));
                }
            }
        }
        let first_final = self.finals().map(|(heard, state)| (heard.until, state)).min();
        match (first_final, self.end()) {
            (Some((final_at, state)), _) => {
                for (heard, answer) in self.answers().filter(|(heard, _)| heard.at > final_at) {
                    let now = answer.text("status");
                    if matches!(answer.status, 200 | 202) && now != state {
                        wrong.push(format!("{state}, and later told {}", told(heard, answer)));
                    }
                }
                // What Redis holds, the ledger can sell: nothing else takes units there.
                if state != "confirmed" && !(may_expire && state == "expired") {
                    wrong.push(format!("accepted, and then {state}"));
                }
            }
            (None, End::Open) => wrong.push("accepted, and never final".to_owned()),
            (None, _) => {}
        }
        wrong
    }
}

/// An answer that nobody may ever get to this question.
fn impossible(purchase: &Purchase, heard: &Heard, answer: &Answer) -> Option<String> {
    let (state, code) = (answer.text("status"), answer.text("code"));
    let right = match (answer.status, heard.asked) {
        (202, Asked::ToBuy) => state == "reserved",
        (200, Asked::ToBuy) => matches!(state, "confirmed" | "rejected" | "expired"),
        (200, Asked::HowItStands) => {
            matches!(state, "reserved" | "confirmed" | "rejected" | "expired")
        }
        (409, Asked::ToBuy) => matches!(code, "sold_out" | "limit_reached"),
        (404, Asked::HowItStands) => code == "unknown_order",
        (503, _) => NOT_NOW.contains(&code) && answer.header("retry-after").is_some(),
        _ => false,
    };
    let about_it = !matches!(answer.status, 200 | 202)
        || answer.body["quantity"].as_u64() == Some(u64::from(purchase.quantity));
    (!right || !about_it).then(|| format!("an impossible answer: {}", told(heard, answer)))
}

fn told(heard: &Heard, answer: &Answer) -> String {
    format!("{} {} when asked {:?}", answer.status, answer.body, heard.asked)
}
