//! Dead letters become rows, one for each reservation.

use std::collections::HashSet;

use uuid::Uuid;

use super::letters::Subject;
use super::{Ledger, LedgerError};
use crate::domain::{LetterKind, ReservationId, fingerprint};

/// A letter to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The reservation's id, or a UUID made of the bytes' hash: the same letter twice is one row.
    pub letter_id: Uuid,
    pub kind: LetterKind,
    pub subject: Option<Subject>,
    pub reason: String,
    pub error: String,
    pub source: String,
    /// All headers, as JSON.
    pub headers: String,
    /// The broker's name for this death.
    pub message_id: Option<String>,
    /// Exactly as it came.
    pub body: Vec<u8>,
}

impl Ledger {
    /// Keeps letters. One that is there already is parked again and counts another attempt, unless
    /// it is only the same death delivered twice.
    pub async fn park(&self, letters: &[Letter]) -> Result<(), LedgerError> {
        let failed = self.failed("park dead letters");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        for letter in letters {
            let subject = letter.subject.as_ref();
            let parked = sqlx::query(include_str!("sql/park_letter.sql"))
                .bind(letter.letter_id)
                .bind(letter.kind.as_str())
                .bind(subject.map(|subject| subject.environment.as_uuid()))
                .bind(subject.map(|subject| subject.reservation_id.as_uuid()))
                .bind(subject.map(|subject| subject.request_id.as_uuid()))
                .bind(subject.map(|subject| subject.item.as_str()))
                .bind(subject.map(|subject| subject.buyer.as_str()))
                .bind(without_nul(&letter.reason))
                .bind(without_nul(&letter.error))
                .bind(without_nul(&fingerprint(&letter.error)))
                .bind(without_nul(&letter.source))
                .bind(&letter.headers)
                .bind(letter.message_id.as_deref().map(without_nul))
                .bind(&letter.body)
                .execute(&mut *transaction)
                .await
                .map_err(&failed)?
                .rows_affected();
            if parked == 1 {
                sqlx::query(
                    "INSERT INTO letter_acts (letter_id, who, what, outcome, detail)
                     VALUES ($1, 'reconciler', 'died', $2, $3)",
                )
                .bind(letter.letter_id)
                .bind(without_nul(&letter.reason))
                .bind(without_nul(&letter.error))
                .execute(&mut *transaction)
                .await
                .map_err(&failed)?;
            }
        }
        transaction.commit().await.map_err(&failed)
    }

    /// Which of these reservations are parked. One that is being replayed, or was, is not: its
    /// message is on its way, or got lost like any other.
    pub async fn parked(
        &self,
        reservations: &[ReservationId],
    ) -> Result<HashSet<ReservationId>, LedgerError> {
        let ids: Vec<Uuid> = reservations.iter().map(ReservationId::as_uuid).collect();
        let parked: Vec<Uuid> = sqlx::query_scalar(
            "SELECT reservation_id FROM dead_letters
             WHERE reservation_id = ANY($1) AND kind = 'reservation' AND state = 'parked'",
        )
        .bind(ids)
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("look for parked letters"))?;
        Ok(parked.into_iter().map(ReservationId::from_uuid).collect())
    }
}

/// Columns of text cannot hold a NUL; whoever is at the broker can send one. The letter's own bytes
/// stay as they came.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
