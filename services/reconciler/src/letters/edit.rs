//! Puts other bytes into a letter. What a reservation is – its ids, item, buyer, quantity and
//! environment – never changes: its hold would be somebody else's.

use std::collections::HashSet;

use shared::backends::Backends;
use shared::domain::{EnvironmentId, LetterContents, LetterKind, Reservation};
use shared::ledger::{EditOutcome, EditedLetter, KeptLetter, LedgerError};
use shared::stock::StockError;
use uuid::Uuid;

use super::judge::contents_of;
use super::{Identity, identities};

/// Why bytes are not taken. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the new bytes cannot be read: {0}")]
    Undecodable(String),
    #[error("the new bytes say another {0}, which never changes")]
    Protected(&'static str),
    #[error("reservation {0} comes twice in the new bytes")]
    Twice(Uuid),
    #[error("the new bytes contradict {0}")]
    Contradicts(String),
    #[error("there is a letter {0} already; replay or discard that one, and discard this one")]
    Taken(Uuid),
    #[error("the letter is {0}, or somebody works on it; only what is parked can be edited")]
    Busy(String),
    #[error("somebody else has edited the letter meanwhile; look at it again")]
    Changed,
    #[error("there is no such letter any more")]
    Gone,
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Edits a letter, and returns the ids under which its contents are kept now: its own, or, when its
/// bytes could not be read before, those of the reservations that they turned out to be.
pub async fn edit(
    backends: &Backends,
    letter: &KeptLetter,
    body: &[u8],
    who: &str,
) -> Result<Vec<Uuid>, EditError> {
    let environment = backends.ledger.environment().await?;
    let identities = identities(body);
    if identities.iter().any(|identity| identity.kind == LetterKind::Unreadable) {
        return Err(EditError::Undecodable(why_unreadable(body)));
    }
    let edited = match letter.kind {
        LetterKind::Unreadable => {
            repaired(backends, environment, &identities).await?;
            identities.iter().map(|identity| kept_as(identity.letter_id, identity)).collect()
        }
        LetterKind::Reservation | LetterKind::Compensation => {
            let [identity] = identities.as_slice() else {
                return Err(EditError::Protected("number of reservations"));
            };
            unchanged(letter, identity, body)?;
            // A compensation keeps its id, which was made of its first bytes.
            vec![kept_as(letter.letter_id, identity)]
        }
    };
    let outcome = backends.ledger.edit_letter(who, letter.letter_id, &letter.body, &edited).await?;
    match outcome {
        EditOutcome::Done => Ok(edited.into_iter().map(|edited| edited.letter_id).collect()),
        EditOutcome::Gone => Err(EditError::Gone),
        EditOutcome::Busy(state) => Err(EditError::Busy(state.to_string())),
        EditOutcome::Changed => Err(EditError::Changed),
        EditOutcome::Taken(id) => Err(EditError::Taken(id)),
    }
}

fn kept_as(letter_id: Uuid, identity: &Identity) -> EditedLetter {
    let Identity { kind, subject, body, .. } = identity.clone();
    EditedLetter { letter_id, kind, subject, body }
}

fn why_unreadable(body: &[u8]) -> String {
    let as_reservations = shared::contract::decode_reservations(body).err();
    as_reservations.map_or_else(|| "no reservation in it".to_owned(), |error| error.to_string())
}

/// A letter that could be read before still says the same purchase.
fn unchanged(letter: &KeptLetter, new: &Identity, body: &[u8]) -> Result<(), EditError> {
    let differs =
        |what, is_same: bool| if is_same { Ok(()) } else { Err(EditError::Protected(what)) };
    let (Some(old), Some(subject)) = (&letter.subject, &new.subject) else {
        return Err(EditError::Protected("kind"));
    };
    differs("kind", letter.kind == new.kind)?;
    differs("environment", old.environment == subject.environment)?;
    differs("reservation id", old.reservation_id == subject.reservation_id)?;
    differs("request id", old.request_id == subject.request_id)?;
    differs("item", old.item == subject.item)?;
    differs("buyer", old.buyer == subject.buyer)?;
    differs("quantity", quantity(&letter.body, old.environment) == quantity(body, old.environment))
}

fn quantity(body: &[u8], environment: EnvironmentId) -> Option<u64> {
    match contents_of(body, environment) {
        LetterContents::Reservation(reservation) => Some(reservation.quantity.units()),
        _ => shared::contract::decode_compensation(body).ok().map(|c| c.quantity.units()),
    }
}

/// Bytes that could not be read before must not contradict what ledger and Redis know.
async fn repaired(
    backends: &Backends,
    environment: EnvironmentId,
    identities: &[Identity],
) -> Result<(), EditError> {
    let mut seen = HashSet::new();
    for identity in identities {
        if !seen.insert(identity.letter_id) {
            return Err(EditError::Twice(identity.letter_id));
        }
        match contents_of(&identity.body, environment) {
            LetterContents::Foreign(_) => return Err(EditError::Protected("environment")),
            LetterContents::Reservation(reservation) => consistent(backends, &reservation).await?,
            LetterContents::Compensation { .. } | LetterContents::Unreadable => {}
        }
    }
    Ok(())
}

async fn consistent(backends: &Backends, reservation: &Reservation) -> Result<(), EditError> {
    let Reservation { item, buyer, request_id, .. } = reservation;
    if let Some(hold) = backends.stock.find_hold(item, buyer, *request_id).await?.hold {
        let same = hold.reservation_id == reservation.reservation_id
            && hold.buyer == *buyer
            && hold.quantity == reservation.quantity;
        if !same {
            return Err(EditError::Contradicts(format!("the hold in Redis: {hold:?}")));
        }
    }
    if let Some(order) = backends.ledger.find_order(*request_id).await? {
        let same =
            order.item == *item && order.buyer == *buyer && order.quantity == reservation.quantity;
        if !same {
            return Err(EditError::Contradicts(format!("the order in the ledger: {order:?}")));
        }
    }
    Ok(())
}
