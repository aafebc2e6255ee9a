//! How a body is recognised before it is read, and what can be wrong with it.

use serde::Deserialize;

/// A body that this process cannot use.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A later release wrote it: leave it for consumers of that release.
    #[error("message type {found} is newer than {known}, which is the newest this process knows")]
    NewerVersion { found: String, known: &'static str },
    /// Nobody will ever understand it.
    #[error("not a {known} message: {reason}")]
    Undecodable { known: &'static str, reason: String },
}

#[derive(Deserialize)]
struct Envelope {
    r#type: String,
}

/// A body that says what it is.
pub(super) trait Typed {
    /// The type that it names.
    fn found(&self) -> &str;
}

/// Reads a body of type `<name>.v<version>`; `known` names the newest version of this process.
pub(super) fn decode<'a, T: Typed + Deserialize<'a>>(
    known: &'static str,
    body: &'a [u8],
) -> Result<T, DecodeError> {
    match serde_json::from_slice::<T>(body) {
        Ok(read) if read.found() == known => Ok(read),
        Ok(read) => Err(of_another_type(known, read.found())),
        // A later version may look different, so its type is asked for alone.
        Err(error) => match serde_json::from_slice::<Envelope>(body) {
            Ok(Envelope { r#type: found }) if found != known => Err(of_another_type(known, &found)),
            _ => Err(invalid(known, error)),
        },
    }
}

fn of_another_type(known: &'static str, found: &str) -> DecodeError {
    if is_newer(found, known) {
        DecodeError::NewerVersion { found: found.to_owned(), known }
    } else {
        invalid(known, format!("its type is {found:?}"))
    }
}

/// A body whose parts break a rule.
pub(super) fn invalid(known: &'static str, reason: impl ToString) -> DecodeError {
    DecodeError::Undecodable { known, reason: reason.to_string() }
}

fn is_newer(found: &str, known: &str) -> bool {
    let split = |text: &str| {
        let (name, version) = text.rsplit_once(".v")?;
        Some((name.to_owned(), version.parse::<u32>().ok()?))
    };
    match (split(found), split(known)) {
        (Some((name, found)), Some((known_name, known))) => name == known_name && found > known,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_version_of_the_same_message_is_newer() {
        let known = "reservations.placed.v1";
        assert!(is_newer("reservations.placed.v2", known));
        assert!(is_newer("reservations.placed.v10", known));
        for other in ["reservations.placed.v0", "orders.placed.v2", "reservations.placed.vx", ""] {
            assert!(!is_newer(other, known), "{other}");
        }
    }
}
