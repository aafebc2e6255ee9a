//! Counts and measures. Each function is one number of [`Metric`]; without [`init`] they do nothing.

use std::sync::OnceLock;

use metrics::{Unit, counter, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;

use super::metric::{Kind, Metric, Row};
use crate::config::limits::NUMBERS_KEPT;
use crate::domain::{ItemId, Quantity};

/// An item, as the reconciler found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemNumbers {
    pub available: u64,
    pub held: u64,
    pub moving: u64,
    pub confirmed_units: u64,
    pub restored_units: u64,
    /// Units that Redis sells too many; below 0: too few.
    pub drift: i64,
}

/// Begins to count, once per process; before, nothing is remembered.
pub fn init() {
    handle();
}

/// Everything so far, as Prometheus reads it.
pub(super) fn render() -> String {
    handle().render()
}

fn handle() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        // The library cannot be told to forget one item. What nobody has looked at for long is
        // forgotten with the next reading.
        let recorder = PrometheusBuilder::new()
            .idle_timeout(MetricKindMask::GAUGE, Some(NUMBERS_KEPT))
            .build_recorder();
        let handle = recorder.handle();
        // The only error is that the process has another recorder already; it then keeps that one.
        let _ = metrics::set_global_recorder(recorder);
        Metric::ALL.into_iter().for_each(describe);
        handle
    })
}

fn describe(metric: Metric) {
    let row = metric.row();
    match row.kind {
        Kind::Counter => metrics::describe_counter!(row.name, Unit::Count, row.help),
        Kind::Gauge => metrics::describe_gauge!(row.name, Unit::Count, row.help),
    }
    for value in row.known {
        counter!(row.name, row.label.unwrap_or_default() => *value).increment(0);
    }
}

/// Ingress answered a purchase request.
pub fn purchase_answered(code: &'static str) {
    by(Metric::PurchaseAnswers, code, 1);
}

/// Stock was taken.
pub(crate) fn reserved(item: &ItemId, units: u64) {
    of_item(Metric::ReservedUnits, item, units);
}

/// Holds became final.
pub(crate) fn confirmed(item: &ItemId, units: u64) {
    of_item(Metric::ConfirmedUnits, item, units);
}

/// Stock went back.
pub(crate) fn restored(item: &ItemId, units: u64) {
    of_item(Metric::RestoredUnits, item, units);
}

/// A consumer got a reservation decided, or set it aside.
pub fn decided(decision: &'static str, quantity: Quantity) {
    by(Metric::DecidedReservations, decision, 1);
    by(Metric::DecidedUnits, decision, quantity.units());
}

/// A message went to the dead letters.
pub fn buried(reason: &'static str) {
    by(Metric::DeadLetters, reason, 1);
}

/// The broker did not take a dead letter, which is kept and tried again.
pub(crate) fn letter_not_taken(outcome: &'static str) {
    by(Metric::LettersNotTaken, outcome, 1);
}

/// The reconciler looked at an overdue hold.
pub fn overdue(step: &'static str) {
    by(Metric::OverdueSteps, step, 1);
}

/// The reconciler found a difference between Redis and the ledger.
pub fn finding(kind: &'static str) {
    by(Metric::Findings, kind, 1);
}

/// The reconciler looked at an item. One that it stops looking at, because it left Redis, is forgotten
/// after [`NUMBERS_KEPT`].
pub fn item(item: &ItemId, numbers: ItemNumbers) {
    let ItemNumbers { available, held, moving, confirmed_units, restored_units, drift } = numbers;
    let unsigned = [
        (Metric::ItemAvailable, available),
        (Metric::ItemHeld, held),
        (Metric::ItemMoving, moving),
        (Metric::ItemConfirmed, confirmed_units),
        (Metric::ItemRestored, restored_units),
    ];
    // Counts of units stay far below 2^53, above which a double would round.
    for (metric, units) in unsigned {
        gauge!(metric.name(), "item" => item.to_string()).set(units as f64);
    }
    gauge!(Metric::ItemDrift.name(), "item" => item.to_string()).set(drift as f64);
}

/// The reconciler went round all items: the sum of their drifts, each without its sign.
pub fn law(total_drift: u64) {
    gauge!(Metric::LawDrift.name()).set(total_drift as f64);
}

fn by(metric: Metric, value: &'static str, times: u64) {
    let Row { name, label, known, .. } = metric.row();
    debug_assert!(known.is_empty() || known.contains(&value), "{name} does not know {value}");
    counter!(name, label.unwrap_or_default() => value).increment(times);
}

fn of_item(metric: Metric, item: &ItemId, units: u64) {
    if units > 0 {
        counter!(metric.name(), "item" => item.to_string()).increment(units);
    }
}
