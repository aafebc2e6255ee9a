//! The life of a hold: `held → confirmed` or `held → restored`, never anything else.

use std::fmt;
use std::str::FromStr;

use super::{InvalidText, OrderState, Verdict};

/// Where a hold stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldState {
    /// Stock is taken; the ledger has not been heard yet.
    Held,
    /// The ledger committed this reservation; the units are sold.
    Confirmed,
    /// The units went back.
    Restored,
}

/// A hold's state, with what its record says of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldStanding {
    Held,
    Confirmed,
    Restored(Verdict),
}

/// What can happen to a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEvent {
    Confirm,
    Restore,
}

/// A step that a settled hold does not take. Its caller is late or repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hold that is {from} does not take {event:?}")]
pub struct NoSuchStep {
    pub from: HoldState,
    pub event: HoldEvent,
}

impl HoldState {
    /// Every state, in the order of a hold's life.
    pub const ALL: [Self; 3] = [Self::Held, Self::Confirmed, Self::Restored];

    /// The one transition table of holds; the scripts are tested against it. Repeating the step
    /// that led to a state changes nothing; the opposite step is refused.
    pub fn next(self, event: HoldEvent) -> Result<Self, NoSuchStep> {
        match (self, event) {
            (Self::Held | Self::Confirmed, HoldEvent::Confirm) => Ok(Self::Confirmed),
            (Self::Held | Self::Restored, HoldEvent::Restore) => Ok(Self::Restored),
            (from, event) => Err(NoSuchStep { from, event }),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Restored => "restored",
        }
    }
}

impl HoldStanding {
    /// How the request is decided, as far as the record knows.
    pub fn decided(&self) -> Option<OrderState> {
        match self {
            Self::Held => None,
            // A surplus reservation was given back; the request itself is confirmed.
            Self::Confirmed | Self::Restored(Verdict::Confirmed(_)) => Some(OrderState::Confirmed),
            Self::Restored(Verdict::Rejected(reason)) => Some(OrderState::Rejected(reason.clone())),
            Self::Restored(Verdict::Expired(reason)) => Some(OrderState::Expired(reason.clone())),
        }
    }
}

impl fmt::Display for HoldState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for HoldState {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or(InvalidText { kind: "a hold's state", rule: "held, confirmed or restored" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_hold_never_changes() {
        assert_eq!(HoldState::Held.next(HoldEvent::Confirm), Ok(HoldState::Confirmed));
        assert_eq!(HoldState::Held.next(HoldEvent::Restore), Ok(HoldState::Restored));
        assert_eq!(HoldState::Confirmed.next(HoldEvent::Confirm), Ok(HoldState::Confirmed));
        assert_eq!(HoldState::Restored.next(HoldEvent::Restore), Ok(HoldState::Restored));
        assert!(HoldState::Confirmed.next(HoldEvent::Restore).is_err());
        assert!(HoldState::Restored.next(HoldEvent::Confirm).is_err());
    }
}
