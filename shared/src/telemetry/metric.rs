//! Every number that a process tells about itself: its name, its unit and what it means. The table in
//! docs/METRICS.md is compared with this one.

/// How a number moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only up, from 0 at the start of the process.
    Counter,
    /// Up and down.
    Gauge,
}

/// Everything that is counted or measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    PurchaseAnswers,
    ReservedUnits,
    ConfirmedUnits,
    RestoredUnits,
    DecidedReservations,
    DecidedUnits,
    DeadLetters,
    LettersNotTaken,
    OverdueSteps,
    Findings,
    ItemAvailable,
    ItemHeld,
    ItemMoving,
    ItemConfirmed,
    ItemRestored,
    ItemDrift,
    LawDrift,
}

/// What there is to know about a metric.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub unit: &'static str,
    /// Its one label, if it has one. Never a buyer, never a request.
    pub label: Option<&'static str>,
    /// One sentence for people.
    pub help: &'static str,
    /// Values of the label that are told from the start, as 0: an increase from nothing is not seen.
    pub known: &'static [&'static str],
}

const ANSWERS: &[&str] = &[
    "reserved",
    "replayed",
    "decided",
    "sold_out",
    "limit_reached",
    "not_open",
    "ended",
    "unknown_item",
    "key_reused",
    "not_warm",
    "not_ready",
    "frozen",
    "paused",
    "broker_unavailable",
    "unknown_outcome",
    "overloaded",
    "body_too_large",
    "invalid_body",
    "invalid_buyer",
    "invalid_field",
    "invalid_item",
    "invalid_key",
    "unauthenticated",
    "unsupported_media_type",
    "internal_error",
];
const DECISIONS: &[&str] = &["confirmed", "rejected", "expired", "surplus", "parked"];
const REASONS: &[&str] =
    &["undecodable", "foreign_environment", "unknown_item", "mismatch", "hopeless", "refused"];
const NOT_TAKEN: &[&str] = &["unroutable", "unknown", "not_sent"];
const STEPS: &[&str] = &["confirm", "restore", "publish_again", "leave_parked", "leave_queued"];

impl Metric {
    pub const ALL: [Self; 17] = [
        Self::PurchaseAnswers,
        Self::ReservedUnits,
        Self::ConfirmedUnits,
        Self::RestoredUnits,
        Self::DecidedReservations,
        Self::DecidedUnits,
        Self::DeadLetters,
        Self::LettersNotTaken,
        Self::OverdueSteps,
        Self::Findings,
        Self::ItemAvailable,
        Self::ItemHeld,
        Self::ItemMoving,
        Self::ItemConfirmed,
        Self::ItemRestored,
        Self::ItemDrift,
        Self::LawDrift,
    ];

    pub fn name(self) -> &'static str {
        self.row().name
    }

    #[rustfmt::skip]
    pub fn row(self) -> Row {
        let counter = |name, unit, label, known, help| {
            Row { name, kind: Kind::Counter, unit, label: Some(label), known, help }
        };
        let gauge = |name, label, help| {
            Row { name, kind: Kind::Gauge, unit: "units", label, known: &[], help }
        };
        let item = Some("item");
        match self {
            Self::PurchaseAnswers => counter("lastunit_purchase_answers_total", "answers", "code", ANSWERS,
                "Answers of ingress to purchase requests, by their code."),
            Self::ReservedUnits => counter("lastunit_reserved_units_total", "units", "item", &[],
                "Units that this process took from the stock in Redis."),
            Self::ConfirmedUnits => counter("lastunit_confirmed_units_total", "units", "item", &[],
                "Units whose holds this process made final in Redis."),
            Self::RestoredUnits => counter("lastunit_restored_units_total", "units", "item", &[],
                "Units that this process gave back to the stock in Redis."),
            Self::DecidedReservations => counter("lastunit_decided_reservations_total", "reservations", "decision", DECISIONS,
                "Reservations that consumers got decided, or set aside; one that is delivered again counts again."),
            Self::DecidedUnits => counter("lastunit_decided_units_total", "units", "decision", DECISIONS,
                "The units of these reservations."),
            Self::DeadLetters => counter("lastunit_dead_letters_total", "messages", "reason", REASONS,
                "Messages that this process gave to the dead letters."),
            Self::LettersNotTaken => counter("lastunit_dead_letters_not_taken_total", "attempts", "outcome", NOT_TAKEN,
                "Attempts to give a message to the dead letters that the broker did not take; it is kept and tried again."),
            Self::OverdueSteps => counter("lastunit_overdue_steps_total", "holds", "step", STEPS,
                "Overdue holds that the reconciler looked at, by what it did."),
            Self::Findings => counter("lastunit_findings_total", "findings", "kind", &[],
                "Differences between Redis and the ledger that the reconciler found, by their kind."),
            Self::ItemAvailable => gauge("lastunit_item_available_units", item,
                "Units that can be bought in Redis, when the reconciler last looked."),
            Self::ItemHeld => gauge("lastunit_item_held_units", item,
                "Units held in Redis and not settled, when the reconciler last looked."),
            Self::ItemMoving => gauge("lastunit_item_moving_units", item,
                "Units on their way between buckets, when the reconciler last looked."),
            Self::ItemConfirmed => gauge("lastunit_item_confirmed_units", item,
                "Units sold and final in Redis, when the reconciler last looked."),
            Self::ItemRestored => gauge("lastunit_item_restored_units", item,
                "Units ever given back in Redis, when the reconciler last looked."),
            Self::ItemDrift => gauge("lastunit_item_drift_units", item,
                "Units that Redis sells too many (above 0) or too few (below 0), by the law of conservation."),
            Self::LawDrift => gauge("lastunit_law_drift_units", None,
                "Sum over all items of the drift without its sign; 0 when the law of conservation holds."),
        }
    }
}
