//! A letter as one line of JSON, for export and import.

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, Utc};
use reconciler::letters::identities;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::domain::{LetterState, fingerprint};
use shared::ledger::KeptLetter;
use uuid::Uuid;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    id: Uuid,
    state: String,
    reason: String,
    error: String,
    source: String,
    headers: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_base64: Option<String>,
    attempts: u64,
    first_died_at: DateTime<Utc>,
    last_died_at: DateTime<Utc>,
    settled_at: Option<DateTime<Utc>>,
}

impl Line {
    pub(crate) fn of(letter: &KeptLetter) -> Self {
        let (body, body_base64) = as_text(&letter.body);
        let (original, original_base64) =
            letter.original.as_deref().map(as_text).unwrap_or_default();
        Self {
            id: letter.letter_id,
            state: letter.state.to_string(),
            reason: letter.reason.clone(),
            error: letter.error.clone(),
            source: letter.source.clone(),
            headers: serde_json::from_str(&letter.headers).unwrap_or(Value::Null),
            body,
            body_base64,
            original,
            original_base64,
            attempts: letter.attempts,
            first_died_at: letter.first_died_at,
            last_died_at: letter.last_died_at,
            settled_at: letter.settled_at,
        }
    }

    /// The letter, if everything about it is right.
    pub(crate) fn letter(self) -> anyhow::Result<KeptLetter> {
        let body = as_bytes("body", self.body, self.body_base64)?.context("it has no body")?;
        let original = as_bytes("original", self.original, self.original_base64)?;
        let found = identities(&body);
        let [identity] = found.as_slice() else {
            bail!("its body holds {} reservations, a letter has one", found.len());
        };
        // An edited compensation keeps the id of its first bytes.
        let known_by = |bytes: &[u8]| identities(bytes).iter().any(|one| one.letter_id == self.id);
        let is_its_own = identity.letter_id == self.id || original.as_deref().is_some_and(known_by);
        ensure!(
            is_its_own,
            "its body is that of letter {}, not of {}",
            identity.letter_id,
            self.id
        );
        let state: LetterState = self.state.parse()?;
        // Whoever was replaying it does so where it came from.
        let state = if state == LetterState::Replaying { LetterState::Parked } else { state };
        let is_settled = matches!(state, LetterState::Replayed | LetterState::Discarded);
        ensure!(is_settled == self.settled_at.is_some(), "it is {state}: settled_at is wrong");
        ensure!(self.attempts >= 1, "it has died at least once: attempts is wrong");
        ensure!(i64::try_from(self.attempts).is_ok(), "attempts is too large");
        ensure!(self.first_died_at <= self.last_died_at, "it died last before it died first");
        ensure!(self.headers.is_object(), "headers must be an object");
        for text in [&self.reason, &self.error, &self.source] {
            ensure!(!text.contains('\0'), "a text holds a NUL");
        }
        let headers = self.headers.to_string();
        ensure!(!headers.contains("\\u0000"), "a header holds a NUL");
        Ok(KeptLetter {
            letter_id: self.id,
            kind: identity.kind,
            subject: identity.subject.clone(),
            fingerprint: fingerprint(&self.error),
            reason: self.reason,
            error: self.error,
            source: self.source,
            headers,
            body,
            original,
            attempts: self.attempts,
            first_died_at: self.first_died_at,
            last_died_at: self.last_died_at,
            state,
            settled_at: self.settled_at,
            discard_reason: None,
        })
    }
}

fn as_text(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(BASE64.encode(bytes))),
    }
}

fn as_bytes(
    what: &str,
    text: Option<String>,
    base64: Option<String>,
) -> anyhow::Result<Option<Vec<u8>>> {
    match (text, base64) {
        (Some(_), Some(_)) => bail!("it has {what} and {what}_base64"),
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(base64)) => {
            Ok(Some(BASE64.decode(base64).with_context(|| format!("{what}_base64 is none"))?))
        }
        (None, None) => Ok(None),
    }
}
