//! Small worlds, each searched to its end. Together they cover what one giant world could not.

use crate::errand::Bag;
use crate::state::{BUYERS, Hold, Ledger, REQUESTS, Redis, Run, State, WarmPlan, signed};

/// Faults that make something new, and are therefore counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The reply of `reserve` is lost.
    LostReply,
    /// A publish ends unknown; the message may be there or not.
    Unknown,
    /// A process dies after an effect and before its acknowledgement.
    Crash,
    /// An effect after a commit is given up: Redis is away, or a compensation is not confirmed.
    Skip,
    /// The broker loses a message.
    Lose,
    /// The broker delivers a message twice.
    Duplicate,
    /// A consumer parks a message.
    Park,
    /// A compensation overtakes its order.
    Stray,
    /// A settled record expires while the item still sells.
    Forget,
}

/// What Redis may forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// All its data.
    Everything,
    /// What it did since copying stopped; a second loss brings the first server's data back.
    Latest,
}

/// One purchase: who, how many units, how often the same key is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub buyer: usize,
    pub units: u8,
    pub tries: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub total: u8,
    pub limit: Option<u8>,
    pub requests: &'static [Request],
    pub faults: &'static [Fault],
    /// How many of these faults may happen in one history, in any mixture.
    pub most_faults: u8,
    pub loss: Loss,
    pub losses: u8,
    /// The other server is empty when it takes over, instead of late.
    pub stranger: bool,
    /// A warm-up waits until nothing is in the queue.
    pub drained: bool,
    /// Nobody who was told 202 is rejected here.
    pub promises: bool,
    /// Overdue holds are looked at.
    pub reconciler: bool,
    /// Corrections that may be under way at once.
    pub corrections: usize,
    /// By how much Redis differs from the ledger when the scenario begins: it is tried with each.
    pub drifts: &'static [i8],
}

impl Scenario {
    pub fn units(&self, request: usize) -> u8 {
        self.requests.get(request).map_or(0, |request| request.units)
    }

    pub fn buyer(&self, request: usize) -> usize {
        self.requests.get(request).map_or(0, |request| request.buyer)
    }

    /// Units that a buyer has bought.
    pub fn bought(&self, ledger: &Ledger, buyer: usize) -> u8 {
        (0..REQUESTS)
            .filter(|&request| self.buyer(request) == buyer)
            .map(|request| ledger.sold[request])
            .sum()
    }

    /// While Redis forgets nothing, its books and the ledger's differ only by what is known.
    pub fn conserves(&self) -> bool {
        self.loss == Loss::Nothing
    }

    pub fn beginnings(&self) -> impl Iterator<Item = State> + use<'_> {
        self.drifts.iter().map(|&drift| self.beginning(drift))
    }

    fn beginning(&self, drift: i8) -> State {
        let mut tries = [0; REQUESTS];
        for (tries, request) in tries.iter_mut().zip(self.requests) {
            *tries = request.tries;
        }
        let redis = Redis {
            epoch: 1,
            available: signed(self.total) + drift,
            holds: [Hold::default(); REQUESTS],
            totals: [0; BUYERS],
            stamp: 0,
            freeze: 0,
            given_back: 0,
        };
        let ledger = Ledger { available: signed(self.total), epoch: 1, ..Ledger::default() };
        State {
            redis,
            other: Redis::default(),
            other_lags: self.stranger,
            server: 0,
            ledger,
            bag: Bag::EMPTY,
            warm: WarmPlan::default(),
            runs: [Run::Idle; 2],
            told: [false; REQUESTS],
            tries,
            minted: [0; REQUESTS],
            faults: self.most_faults,
            losses: self.losses,
            drift,
            breach: None,
        }
    }
}
