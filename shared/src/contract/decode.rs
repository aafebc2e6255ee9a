//! How a body is recognised before it is read, and what can be wrong with it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

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

/// Reads a body of type `<name>.v<version>`; `known` names the newest version of this process.
pub(super) fn decode<T: DeserializeOwned>(
    known: &'static str,
    body: &[u8],
) -> Result<T, DecodeError> {
    let undecodable = |error: serde_json::Error| invalid(known, error);
    let Envelope { r#type: found } = serde_json::from_slice(body).map_err(undecodable)?;
    if found != known {
        return Err(if is_newer(&found, known) {
            DecodeError::NewerVersion { found, known }
        } else {
            invalid(known, format!("its type is {found:?}"))
        });
    }
    serde_json::from_slice(body).map_err(undecodable)
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
