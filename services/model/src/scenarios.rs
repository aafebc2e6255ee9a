//! The worlds that are searched.

use crate::scenario::Fault::{
    Crash, Duplicate, Forget, Lose, LostReply, Park, Skip, Stray, Unknown,
};
use crate::scenario::{Loss, Request, Scenario};

const fn buys(buyer: usize, tries: u8) -> Request {
    Request { buyer, units: 1, tries }
}

/// What most scenarios begin from.
const PLAIN: Scenario = Scenario {
    name: "",
    about: "",
    total: 1,
    limit: None,
    requests: &[buys(0, 2), buys(1, 1)],
    faults: &[],
    most_faults: 0,
    loss: Loss::Nothing,
    losses: 0,
    stranger: false,
    drained: false,
    promises: true,
    reconciler: true,
    corrections: 0,
    drifts: &[0],
};

pub const ALL: &[Scenario] = &[
    DRAINED,
    LETTERS,
    LIMIT,
    CORRECTED,
    LAST_UNIT,
    FORGOTTEN,
    FAILOVER,
    THERE_AND_BACK,
    REPLACED,
    LIMIT_EMPTIED,
    EMPTIED,
];

pub const LAST_UNIT: Scenario = Scenario {
    name: "last-unit",
    about: "two buyers and one unit; every message and reply may be lost, late, doubled",
    requests: &[buys(0, 3), buys(1, 2)],
    faults: &[LostReply, Unknown, Crash, Skip, Lose, Duplicate, Stray],
    most_faults: 3,
    ..PLAIN
};

pub const LETTERS: Scenario = Scenario {
    name: "letters",
    about: "two buyers and two units; letters are parked, replayed, discarded; compensations overtake",
    total: 2,
    faults: &[Unknown, Crash, Duplicate, Park, Stray],
    most_faults: 3,
    ..PLAIN
};

pub const LIMIT: Scenario = Scenario {
    name: "limit",
    about: "one buyer with two keys and a limit of one, another buyer, two units",
    total: 2,
    limit: Some(1),
    requests: &[buys(0, 2), buys(0, 1), buys(1, 1)],
    faults: &[LostReply, Unknown, Crash, Skip, Lose, Duplicate, Stray],
    most_faults: 1,
    ..PLAIN
};

pub const FORGOTTEN: Scenario = Scenario {
    name: "forgotten-record",
    about: "settled records expire while the item still sells, so that a key is reserved anew",
    total: 2,
    requests: &[buys(0, 3), buys(1, 1)],
    faults: &[Unknown, Duplicate, Stray, Forget],
    most_faults: 3,
    ..PLAIN
};

pub const EMPTIED: Scenario = Scenario {
    name: "emptied",
    about: "Redis loses everything and is warmed while messages are still under way",
    faults: &[LostReply, Unknown, Crash, Duplicate],
    most_faults: 1,
    loss: Loss::Everything,
    losses: 1,
    promises: false,
    corrections: 1,
    ..PLAIN
};

pub const DRAINED: Scenario = Scenario {
    name: "emptied-drained",
    about: "Redis loses everything and is warmed once the queue is drained",
    drained: true,
    promises: true,
    most_faults: 2,
    ..EMPTIED
};

pub const LIMIT_EMPTIED: Scenario = Scenario {
    name: "limit-emptied",
    about: "one buyer with two keys and a limit of one; Redis loses everything, the total included",
    total: 2,
    limit: Some(1),
    requests: &[buys(0, 2), buys(0, 1)],
    faults: &[],
    most_faults: 0,
    ..EMPTIED
};

pub const FAILOVER: Scenario = Scenario {
    name: "failover",
    about: "another server takes over with earlier data",
    loss: Loss::Latest,
    ..EMPTIED
};

pub const THERE_AND_BACK: Scenario = Scenario {
    name: "there-and-back",
    about: "another server takes over with earlier data, then the first comes back with its own",
    faults: &[],
    most_faults: 0,
    losses: 2,
    ..FAILOVER
};

pub const REPLACED: Scenario = Scenario {
    name: "replaced",
    about: "an empty server takes over and is warmed, then the first comes back with old holds",
    stranger: true,
    requests: &[buys(0, 1), buys(1, 1)],
    ..THERE_AND_BACK
};

pub const CORRECTED: Scenario = Scenario {
    name: "corrected",
    about: "Redis begins one unit short, right, or one unit over; corrections stall and overlap",
    requests: &[buys(0, 1), buys(1, 1)],
    faults: &[],
    most_faults: 0,
    // One unit over: somebody is promised it, and rejected.
    promises: false,
    corrections: 2,
    drifts: &[-1, 0, 1],
    ..PLAIN
};

/// Not among the scenarios: it shows what the reconciler is for.
pub const ALONE: Scenario = Scenario {
    name: "without-reconciler",
    about: "nobody looks at overdue holds",
    reconciler: false,
    ..LAST_UNIT
};
