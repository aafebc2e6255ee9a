//! One moment of the whole line: Redis, the ledger, and everything that is under way.

use crate::errand::Bag;
use crate::laws::Law;

/// Purchases that a scenario may name; `a`, `b` and `c` in a trace.
pub const REQUESTS: usize = 3;
/// Buyers behind them.
pub const BUYERS: usize = 2;
/// Reconcilers that correct at the same time: one that was believed dead, and its successor.
pub const RUNS: usize = 2;
/// Most reservation ids of one request. Going over it is a panic, never a silent bound.
pub const NUMBERS: u8 = 7;
/// Without the rule that a hold keeps its id, only requests with fewer ids than this get fresh ones:
/// there would be no end of them.
pub const ENOUGH_FRESH: u8 = 3;

/// A reservation id: the `number`-th taking of stock for a request, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reservation {
    pub request: u8,
    pub number: u8,
}

/// How a request is decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    #[default]
    Undecided,
    Confirmed,
    Rejected,
    Expired,
}

/// The ledger row of a request, `Undecided` while there is none, and the reservation it names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Order {
    pub class: Class,
    pub number: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HoldState {
    #[default]
    None,
    Held,
    Confirmed,
    Restored,
}

/// The record of a request in Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hold {
    pub state: HoldState,
    /// What a restored record says of its request.
    pub verdict: Class,
    pub number: u8,
    pub epoch: u8,
}

/// One bucket in Redis. Epoch 0: the item is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Redis {
    pub epoch: u8,
    pub available: i8,
    pub holds: [Hold; REQUESTS],
    /// Units that each buyer holds or has bought; kept only where there is a limit.
    pub totals: [u8; BUYERS],
    /// The server on which this bucket was last made to agree with the ledger.
    pub stamp: u8,
    /// Which run froze it; 0 for none. It stands for the freeze token and the fence together.
    pub freeze: u8,
    /// For the laws only: the reservations whose units went back since the warm-up.
    pub given_back: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    pub available: i8,
    pub epoch: u8,
    pub orders: [Order; REQUESTS],
    /// Units that were taken off `available` for each request.
    pub sold: [u8; REQUESTS],
}

/// A warm-up between its ledger transaction and the build in Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct WarmPlan {
    /// 0 when no warm-up is under way.
    pub epoch: u8,
    pub available: i8,
    pub orders: [Order; REQUESTS],
}

/// A correction of stock: what it knows so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Run {
    #[default]
    Idle,
    /// Redis was frozen and read: its stock, and the number of each hold that was held (0 for none).
    Snapped { available: i8, held: [u8; REQUESTS] },
    /// Only when the order is turned round: the ledger was read first.
    Read { available: i8, confirmed: [u8; REQUESTS] },
    /// What `correct` will be called with: a difference, or a value when differences are off.
    Ready { value: i8 },
}

/// Everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    pub redis: Redis,
    /// The other server's data, once copying to it has stopped.
    pub other: Redis,
    pub other_lags: bool,
    /// Counts failovers, as `master_replid` does: it never comes back.
    pub server: u8,
    pub ledger: Ledger,
    pub bag: Bag,
    pub warm: WarmPlan,
    pub runs: [Run; RUNS],
    /// Which requests were answered 202.
    pub told: [bool; REQUESTS],
    pub tries: [u8; REQUESTS],
    pub minted: [u8; REQUESTS],
    pub faults: u8,
    pub losses: u8,
    /// By how much Redis may differ from the ledger: what a scenario began with, until a
    /// correction.
    pub drift: i8,
    /// A law that a step broke and that no single state shows.
    pub breach: Option<Law>,
}

impl Reservation {
    pub fn new(request: usize, number: u8) -> Self {
        Self { request: request.to_le_bytes()[0], number }
    }

    pub fn index(self) -> usize {
        usize::from(self.request)
    }

    /// Its bit in `given_back`.
    pub fn bit(self) -> u32 {
        1 << (self.request * NUMBERS + self.number - 1)
    }
}

impl Redis {
    pub fn give(&mut self, units: u8) {
        self.available += signed(units);
    }

    pub fn take(&mut self, units: u8) {
        self.available -= signed(units);
    }
}

impl Ledger {
    /// True when a confirmed order names this very reservation.
    pub fn has_sold(&self, request: usize, number: u8) -> bool {
        self.orders[request] == Order { class: Class::Confirmed, number }
    }
}

impl State {
    /// A new reservation id.
    pub fn mint(&mut self, request: usize) -> Reservation {
        self.minted[request] += 1;
        let number = self.minted[request];
        assert!(number <= NUMBERS, "a request has more than {NUMBERS} reservations");
        Reservation::new(request, number)
    }
}

/// Units are counted in single figures here.
pub fn signed(units: u8) -> i8 {
    i8::try_from(units).unwrap_or(i8::MAX)
}
