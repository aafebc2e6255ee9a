//! Dead letters become rows, one for each reservation.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, ItemId, RequestId, ReservationId};

/// A letter to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The reservation's id, or a UUID made of the bytes' hash: the same letter twice is one row.
    pub letter_id: Uuid,
    pub subject: Option<Subject>,
    pub reason: String,
    pub error: String,
    pub source: String,
    /// Exactly as it came.
    pub body: Vec<u8>,
}

/// What a letter is about, when its bytes could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub reservation_id: ReservationId,
    pub request_id: RequestId,
    pub item: ItemId,
    pub buyer: BuyerId,
}

impl Ledger {
    /// Keeps letters; one that is there already counts another attempt.
    pub async fn park(&self, letters: &[Letter]) -> Result<(), LedgerError> {
        let failed = self.failed("park dead letters");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()")
            .fetch_one(&mut *transaction)
            .await
            .map_err(&failed)?;
        for letter in letters {
            let subject = letter.subject.as_ref();
            sqlx::query(include_str!("sql/park_letter.sql"))
                .bind(letter.letter_id)
                .bind(subject.map(|subject| subject.reservation_id.as_uuid()))
                .bind(subject.map(|subject| subject.request_id.as_uuid()))
                .bind(subject.map(|subject| subject.item.as_str()))
                .bind(subject.map(|subject| subject.buyer.as_str()))
                .bind(&letter.reason)
                .bind(&letter.error)
                .bind(&letter.source)
                .bind(&letter.body)
                .bind(now)
                .execute(&mut *transaction)
                .await
                .map_err(&failed)?;
        }
        transaction.commit().await.map_err(&failed)
    }

    /// Which of these reservations are parked.
    pub async fn parked(
        &self,
        reservations: &[ReservationId],
    ) -> Result<HashSet<ReservationId>, LedgerError> {
        let ids: Vec<Uuid> = reservations.iter().map(ReservationId::as_uuid).collect();
        let parked: Vec<Uuid> = sqlx::query_scalar(
            "SELECT reservation_id FROM dead_letters
             WHERE reservation_id = ANY($1) AND state = 'parked'",
        )
        .bind(ids)
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("look for parked letters"))?;
        Ok(parked.into_iter().map(ReservationId::from_uuid).collect())
    }
}
