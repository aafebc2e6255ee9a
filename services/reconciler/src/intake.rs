//! Turns a dead message into rows: one for each reservation, or one for bytes that cannot be read.

use shared::ledger::Letter;
use shared::queue::Delivery;

use crate::letters::identities;

/// The rows of a message. The same message always gives the same rows.
pub(crate) fn letters(delivery: &Delivery) -> Vec<Letter> {
    let header = |name: &str| delivery.headers.get(name).cloned();
    let reason = header("reason").unwrap_or_else(|| "dropped_by_broker".to_owned());
    let source = header("source").unwrap_or_else(|| delivery.queue.to_string());
    identities(&delivery.body)
        .into_iter()
        .map(|identity| Letter {
            letter_id: identity.letter_id,
            kind: identity.kind,
            subject: identity.subject,
            reason: reason.clone(),
            error: header("error").unwrap_or_default(),
            source: source.clone(),
            headers: delivery.all_headers.to_string(),
            message_id: delivery.message_id.clone(),
            body: identity.body,
        })
        .collect()
}
