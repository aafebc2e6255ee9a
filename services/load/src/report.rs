//! What the buyers were told, next to what the books say: the verdict.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use shared::domain::{Books, broken_laws};
use shared::ledger::OrderCounts;

use crate::crowd::{Fared, Outcome, Plan};
use crate::settle::Finals;

/// A rehearsal, in numbers. Units are units of stock, `_ms` are milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub units: u64,
    pub buyers: u64,
    pub consumers: u32,
    pub seed: u64,
    pub connections: u32,
    /// Buyers who were told that they have their units.
    pub accepted: u64,
    /// Accepted purchases that the ledger confirmed.
    pub confirmed: u64,
    /// Accepted purchases that the ledger refused; their units went back.
    pub rejected: u64,
    pub sold_out: u64,
    /// Buyers who got another answer in the end, or none.
    pub errors: u64,
    /// Attempts beyond each buyer's first.
    pub retries: u64,
    pub ledger_available: u64,
    pub redis_available: Option<u64>,
    /// Holds that are neither confirmed nor restored.
    pub held: u64,
    /// Units that Redis sells too many, or too few.
    pub drift: Option<i64>,
    /// Orders beyond one for each buyer.
    pub duplicates: u64,
    /// From the first purchase to the last answer.
    pub bought_ms: u64,
    /// From the first purchase until every accepted one was final.
    pub converged_ms: u64,
    pub accept_p50_ms: f64,
    pub accept_p99_ms: f64,
    /// `pass` when the law holds, else `fail`.
    pub verdict: &'static str,
    /// What is wrong, if anything.
    pub violations: Vec<String>,
}

/// What a rehearsal came to.
pub struct Evidence<'a> {
    pub plan: &'a Plan,
    pub units: u64,
    pub consumers: u32,
    pub fared: &'a [Fared],
    pub finals: Finals,
    pub orders: OrderCounts,
    pub books: Books,
    pub bought: Duration,
    pub converged: Duration,
}

impl Report {
    /// Judges a rehearsal.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let Evidence { plan, fared, finals, orders, books, .. } = evidence;
        let count = |wanted: fn(&Outcome) -> bool| {
            fared.iter().filter(|one| wanted(&one.outcome)).count() as u64
        };
        let latency = latency(fared);
        let decided = orders.confirmed + orders.rejected + orders.expired;
        let mut report = Self {
            units: evidence.units,
            buyers: u64::from(plan.buyers),
            consumers: evidence.consumers,
            seed: plan.seed,
            connections: plan.connections.min(plan.buyers),
            accepted: count(|outcome| matches!(outcome, Outcome::Accepted { .. })),
            confirmed: finals.confirmed,
            rejected: finals.rejected,
            sold_out: count(|outcome| *outcome == Outcome::SoldOut),
            errors: count(|outcome| matches!(outcome, Outcome::Error(_))),
            retries: fared.iter().map(|one| u64::from(one.attempts.saturating_sub(1))).sum(),
            ledger_available: books.ledger_available,
            redis_available: books.redis_available,
            held: books.held,
            drift: books.drift(),
            duplicates: decided.saturating_sub(orders.buyers),
            bought_ms: millis(evidence.bought),
            converged_ms: millis(evidence.converged),
            accept_p50_ms: latency.value_at_quantile(0.5) as f64 / 1000.0,
            accept_p99_ms: latency.value_at_quantile(0.99) as f64 / 1000.0,
            verdict: "pass",
            violations: Vec::new(),
        };
        report.violations = report.broken(evidence);
        if !report.violations.is_empty() {
            report.verdict = "fail";
        }
        report
    }

    /// The law of the books, and the law of what the buyers were told.
    fn broken(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let Evidence { plan, fared, finals, orders, books, .. } = evidence;
        let mut broken: Vec<String> = broken_laws(books).iter().map(ToString::to_string).collect();
        let mut unless = |holds: bool, what: String| {
            if !holds {
                broken.push(what);
            }
        };
        unless(finals.open == 0, format!("{} accepted purchases are not final", finals.open));
        unless(self.duplicates == 0, format!("{} orders are duplicates", self.duplicates));
        unless(
            finals.confirmed == orders.confirmed,
            format!(
                "buyers see {} confirmed orders, the ledger has {}",
                finals.confirmed, orders.confirmed
            ),
        );
        let served = (self.units / u64::from(plan.quantity)).min(self.buyers);
        unless(
            self.errors > 0 || finals.confirmed == served,
            format!("{} orders are confirmed, {served} could have been", finals.confirmed),
        );
        let first_error = fared.iter().find_map(|one| match &one.outcome {
            Outcome::Error(error) => Some(format!("{}: {error}", one.buyer)),
            _ => None,
        });
        if let Some(error) = first_error {
            let count = self.errors;
            unless(false, format!("{count} buyers got no proper answer, for example {error}"));
        }
        broken
    }
}

/// Microseconds from a buyer's first attempt to being accepted.
fn latency(fared: &[Fared]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    for one in fared {
        if matches!(one.outcome, Outcome::Accepted { .. }) {
            // The histogram resizes itself; a value that it cannot hold does not occur.
            let _ = histogram.record(u64::try_from(one.took.as_micros()).unwrap_or(u64::MAX));
        }
    }
    histogram
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
