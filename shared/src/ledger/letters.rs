//! Dead letters, as the ledger keeps them, and what was done to them.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::rows::unsigned;
use super::{Ledger, LedgerError};
use crate::domain::{
    BuyerId, EnvironmentId, ItemId, LetterKind, LetterState, Reason, RequestId, ReservationId,
};

/// What a letter is about, when its bytes could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub environment: EnvironmentId,
    pub reservation_id: ReservationId,
    pub request_id: RequestId,
    pub item: ItemId,
    pub buyer: BuyerId,
}

/// A letter that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLetter {
    pub letter_id: Uuid,
    pub kind: LetterKind,
    pub subject: Option<Subject>,
    pub reason: String,
    pub error: String,
    pub fingerprint: String,
    pub source: String,
    /// Of the latest death, as JSON.
    pub headers: String,
    pub body: Vec<u8>,
    /// The bytes as they came, once somebody has edited them.
    pub original: Option<Vec<u8>>,
    /// How often it has died.
    pub attempts: u64,
    pub first_died_at: DateTime<Utc>,
    pub last_died_at: DateTime<Utc>,
    pub state: LetterState,
    /// When it was replayed or discarded.
    pub settled_at: Option<DateTime<Utc>>,
    /// A discard that has begun.
    pub discard_reason: Option<Reason>,
}

/// Something that was done to a letter.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct LetterAct {
    pub at: DateTime<Utc>,
    pub who: String,
    /// `died`, `replay`, `discard`, `edit` or `import`.
    pub what: String,
    /// How it ended; `begun` while it goes on, or when it was cut short.
    pub outcome: String,
    pub detail: String,
}

/// The columns of a [`LetterRow`].
macro_rules! letter_columns {
    () => {
        "letter_id, kind, environment_id, reservation_id, request_id, item_id, buyer_id, reason, error,
         fingerprint, source, headers::text AS headers, body, original, attempts, first_died_at,
         last_died_at, state, settled_at, discard_reason"
    };
}

pub(super) use letter_columns;

#[derive(FromRow)]
pub(super) struct LetterRow {
    letter_id: Uuid,
    kind: String,
    environment_id: Option<Uuid>,
    reservation_id: Option<Uuid>,
    request_id: Option<Uuid>,
    item_id: Option<String>,
    buyer_id: Option<String>,
    reason: String,
    error: String,
    fingerprint: String,
    source: String,
    headers: String,
    body: Vec<u8>,
    original: Option<Vec<u8>>,
    attempts: i64,
    first_died_at: DateTime<Utc>,
    last_died_at: DateTime<Utc>,
    state: String,
    settled_at: Option<DateTime<Utc>>,
    discard_reason: Option<String>,
}

impl TryFrom<LetterRow> for KeptLetter {
    type Error = LedgerError;

    fn try_from(row: LetterRow) -> Result<Self, LedgerError> {
        let ids = (row.environment_id, row.reservation_id, row.request_id);
        let subject = match (ids, row.item_id, row.buyer_id) {
            (
                (Some(environment), Some(reservation_id), Some(request_id)),
                Some(item),
                Some(buyer),
            ) => Some(Subject {
                environment: EnvironmentId::from_uuid(environment),
                reservation_id: ReservationId::from_uuid(reservation_id),
                request_id: RequestId::from_uuid(request_id),
                item: item.parse().map_err(LedgerError::corrupt)?,
                buyer: buyer.parse().map_err(LedgerError::corrupt)?,
            }),
            _ => None,
        };
        Ok(Self {
            letter_id: row.letter_id,
            kind: row.kind.parse().map_err(LedgerError::corrupt)?,
            subject,
            reason: row.reason,
            error: row.error,
            fingerprint: row.fingerprint,
            source: row.source,
            headers: row.headers,
            body: row.body,
            original: row.original,
            attempts: unsigned(row.attempts)?,
            first_died_at: row.first_died_at,
            last_died_at: row.last_died_at,
            state: row.state.parse().map_err(LedgerError::corrupt)?,
            settled_at: row.settled_at,
            discard_reason: row
                .discard_reason
                .map(|reason| reason.parse().map_err(LedgerError::corrupt))
                .transpose()?,
        })
    }
}

impl Ledger {
    /// A letter, if it is kept.
    pub async fn find_letter(&self, letter_id: Uuid) -> Result<Option<KeptLetter>, LedgerError> {
        let row: Option<LetterRow> = sqlx::query_as(concat!(
            "SELECT ",
            letter_columns!(),
            " FROM dead_letters WHERE letter_id = $1"
        ))
        .bind(letter_id)
        .fetch_optional(&self.pool)
        .await
        .map_err(self.failed("read a dead letter"))?;
        row.map(KeptLetter::try_from).transpose()
    }

    /// Letters of a request, the first first.
    pub async fn letters_of_request(
        &self,
        request_id: RequestId,
    ) -> Result<Vec<KeptLetter>, LedgerError> {
        let rows: Vec<LetterRow> = sqlx::query_as(concat!(
            "SELECT ",
            letter_columns!(),
            " FROM dead_letters WHERE request_id = $1 ORDER BY first_died_at, letter_id"
        ))
        .bind(request_id.as_uuid())
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("read the dead letters of a request"))?;
        rows.into_iter().map(KeptLetter::try_from).collect()
    }

    /// What was done to a letter, the first first.
    pub async fn letter_acts(&self, letter_id: Uuid) -> Result<Vec<LetterAct>, LedgerError> {
        sqlx::query_as(
            "SELECT at, who, what, outcome, detail FROM letter_acts
             WHERE letter_id = $1 ORDER BY act_id",
        )
        .bind(letter_id)
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("read what was done to a dead letter"))
    }
}
