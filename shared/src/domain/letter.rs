//! The life of a dead letter, and what its errors have in common.

use std::fmt;
use std::str::FromStr;

use super::InvalidText;

/// What a letter's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LetterKind {
    /// A reservation that nobody could decide.
    Reservation,
    /// A compensation that was refused.
    Compensation,
    /// Nothing that this release can read.
    Unreadable,
}

/// Where a letter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LetterState {
    /// It waits for an operator; a reservation keeps its stock meanwhile.
    Parked,
    /// Somebody has begun to send it again.
    Replaying,
    /// The broker has it again.
    Replayed,
    /// Nobody wants it any more; its stock went back.
    Discarded,
}

/// What can happen to a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterEvent {
    /// It came over the queue `dead` again.
    Die,
    /// A replay takes it, or takes it over from one that was cut short.
    Take,
    /// The broker has confirmed it.
    Send,
    /// Nothing was sent after all.
    PutBack,
    Discard,
}

/// A step that a letter does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a letter that is {from} does not take {event:?}")]
pub struct NoSuchLetterStep {
    pub from: LetterState,
    pub event: LetterEvent,
}

impl LetterState {
    /// Every state, in the order of a letter's life.
    pub const ALL: [Self; 4] = [Self::Parked, Self::Replaying, Self::Replayed, Self::Discarded];

    /// The one transition table of letters; the ledger's statements are tested against it.
    pub fn next(self, event: LetterEvent) -> Result<Self, NoSuchLetterStep> {
        match (self, event) {
            (_, LetterEvent::Die) => Ok(Self::Parked),
            (Self::Parked | Self::Replaying, LetterEvent::Take) => Ok(Self::Replaying),
            (Self::Replaying, LetterEvent::Send) => Ok(Self::Replayed),
            (Self::Replaying, LetterEvent::PutBack) => Ok(Self::Parked),
            (Self::Parked | Self::Replaying, LetterEvent::Discard) => Ok(Self::Discarded),
            (from, event) => Err(NoSuchLetterStep { from, event }),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Replaying => "replaying",
            Self::Replayed => "replayed",
            Self::Discarded => "discarded",
        }
    }
}

impl LetterKind {
    const ALL: [Self; 3] = [Self::Reservation, Self::Compensation, Self::Unreadable];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reservation => "reservation",
            Self::Compensation => "compensation",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for LetterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LetterState {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let kind = "a letter's state";
        let rule = "parked, replaying, replayed or discarded";
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or(InvalidText { kind, rule })
    }
}

impl fmt::Display for LetterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LetterKind {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let kind = "a letter's kind";
        let rule = "reservation, compensation or unreadable";
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or(InvalidText { kind, rule })
    }
}

/// The most that a fingerprint keeps of an error.
const FINGERPRINT_CHARACTERS: usize = 200;

/// An error without what differs from letter to letter: UUIDs become `<id>`, other numbers `#`. So
/// a thousand letters that died of the same have the same fingerprint.
pub fn fingerprint(error: &str) -> String {
    let mut print = String::new();
    let mut rest = error;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_uuid(rest) {
            print.push_str("<id>");
            rest = after;
        } else if first.is_ascii_digit() {
            print.push('#');
            rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        } else {
            print.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    print.chars().take(FINGERPRINT_CHARACTERS).collect()
}

/// What follows a UUID in its usual form, if the text begins with one.
fn after_uuid(text: &str) -> Option<&str> {
    const LENGTH: usize = 36;
    let is_part = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let (uuid, after) = text.split_at_checked(LENGTH)?;
    uuid.bytes().enumerate().all(is_part).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_died_of_the_same_have_one_fingerprint() {
        let of = |id: &str, number: u32| {
            fingerprint(&format!("its request {id} is decided for {number} units of shoe"))
        };
        let first = of("0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77", 7);
        assert_eq!(first, "its request <id> is decided for # units of shoe");
        assert_eq!(of("AAAAAAAA-BBBB-cccc-dddd-eeeeeeeeeeee", 1_234), first);
        assert_eq!(fingerprint("ünïcode 12é34"), "ünïcode #é#");
        assert_eq!(fingerprint(&"é".repeat(500)).chars().count(), FINGERPRINT_CHARACTERS);
    }

    #[test]
    fn a_settled_letter_only_dies_again() {
        for state in [LetterState::Replayed, LetterState::Discarded] {
            assert_eq!(state.next(LetterEvent::Die), Ok(LetterState::Parked));
            for event in
                [LetterEvent::Take, LetterEvent::Send, LetterEvent::PutBack, LetterEvent::Discard]
            {
                assert!(state.next(event).is_err(), "{state} {event:?}");
            }
        }
    }

    #[test]
    fn states_and_kinds_read_back_as_they_are_written() {
        for state in LetterState::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        for kind in LetterKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }
}
