//! The rules of the protocol that can be switched off, to see what each of them is for.

use std::fmt;

macro_rules! protections {
    ($($name:ident $text:literal),+ $(,)?) => {
        /// A rule. What happens without it stands where it is asked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Protection { $($name),+ }

        impl Protection {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The rule in words.
            pub fn rule(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }
    };
}

protections! {
    ExpireBeforeRestore "an undecided request is expired in the ledger before its stock goes back",
    TombstoneTest "the commit leaves an expired order alone",
    HoldStaysOnUnknown "the hold stays when a publish ends unknown",
    RepublishStoredId "a hold is published again under its stored reservation id",
    RestoreOnlyHeld "restore gives units back only from state held",
    SurplusIsNotRepeated "another reservation of a decided request is surplus, not a repeat",
    SurplusIsNotNew "another reservation of a decided request is surplus, not a new order",
    ReconcilerComparesIds "the reconciler confirms a hold only under the order's reservation id",
    ReplayAfterConfirm "a repeat is answered 202 only after the broker's confirm",
    CorrectByDifference "a correction adds a difference instead of setting a value",
    CorrectUnderFreeze "a correction acts only while its own freeze lasts",
    RedisBeforeLedger "a correction reads Redis before the ledger",
    CompensatorRefuses "the compensator refuses to restore what the ledger has sold",
    DuplicateRepeats "a decision that is found again is followed up",
    LookSettles "the reconciler settles overdue holds that are decided",
    RestoreComparesIds "restore acts only on the hold of its own reservation id",
    ConfirmComparesIds "confirm acts only on the hold of its own reservation id",
    LedgerJudgesStock "the ledger judges the stock again",
    LedgerJudgesLimit "the ledger judges the limit again",
    OldEpochForgotten "a hold of an earlier epoch counts as unseen",
    IncarnationGate "a bucket sells only on the server that it was stamped on",
}

/// The rules that are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protections(u32);

impl Protections {
    pub const ALL: Self = Self(u32::MAX);

    #[must_use]
    pub fn without(self, off: Protection) -> Self {
        Self(self.0 & !(1 << off as u32))
    }

    pub fn has(self, protection: Protection) -> bool {
        self.0 & (1 << protection as u32) != 0
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
