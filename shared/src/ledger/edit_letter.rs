//! Changes the bytes of a letter; the bytes as they came are kept beside them.

use uuid::Uuid;

use super::letters::Subject;
use super::{Ledger, LedgerError};
use crate::domain::{LetterKind, LetterState};

/// What a letter becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedLetter {
    pub letter_id: Uuid,
    pub kind: LetterKind,
    pub subject: Option<Subject>,
    pub body: Vec<u8>,
}

/// What became of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOutcome {
    Done,
    /// There is no such letter any more.
    Gone,
    /// It is not parked, or somebody works on it.
    Busy(LetterState),
    /// Somebody else has edited it meanwhile.
    Changed,
    /// There is a letter of this id already.
    Taken(Uuid),
}

impl Ledger {
    /// Puts other bytes into a parked letter whose bytes are still `seen`. Bytes that could not be
    /// read before may turn out to be several letters: the first keeps the history, the others begin
    /// with this edit.
    pub async fn edit_letter(
        &self,
        who: &str,
        letter_id: Uuid,
        seen: &[u8],
        edited: &[EditedLetter],
    ) -> Result<EditOutcome, LedgerError> {
        let failed = self.failed("edit a dead letter");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let row: Option<(String, Vec<u8>, bool)> = sqlx::query_as(
            "SELECT state, body,
                    discard_reason IS NOT NULL OR coalesce(claimed_until >= now(), false)
             FROM dead_letters WHERE letter_id = $1 FOR UPDATE",
        )
        .bind(letter_id)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(&failed)?;
        let outcome = match row {
            None => EditOutcome::Gone,
            Some((state, body, is_busy)) => {
                let state: LetterState = state.parse().map_err(LedgerError::corrupt)?;
                if state != LetterState::Parked || is_busy {
                    EditOutcome::Busy(state)
                } else if body != seen {
                    EditOutcome::Changed
                } else {
                    EditOutcome::Done
                }
            }
        };
        if outcome != EditOutcome::Done {
            transaction.rollback().await.map_err(&failed)?;
            return Ok(outcome);
        }
        // From the last to the first, so that the others are copied from the letter as it was.
        for (place, one) in edited.iter().enumerate().rev() {
            let subject = one.subject.as_ref();
            let statement = if place == 0 {
                "UPDATE dead_letters
                 SET letter_id = $2, kind = $3, environment_id = $4, reservation_id = $5,
                     request_id = $6, item_id = $7, buyer_id = $8, body = $9,
                     original = coalesce(original, body)
                 WHERE letter_id = $1
                   AND ($1 = $2 OR NOT EXISTS (SELECT FROM dead_letters WHERE letter_id = $2))"
            } else {
                "INSERT INTO dead_letters
                     (letter_id, kind, environment_id, reservation_id, request_id, item_id,
                      buyer_id, body, reason, error, fingerprint, source, headers, original,
                      first_died_at, last_died_at)
                 SELECT $2, $3, $4, $5, $6, $7, $8, $9, reason, error, fingerprint, source, headers,
                        coalesce(original, body), first_died_at, last_died_at
                 FROM dead_letters WHERE letter_id = $1
                 ON CONFLICT DO NOTHING"
            };
            let written = sqlx::query(statement)
                .bind(letter_id)
                .bind(one.letter_id)
                .bind(one.kind.as_str())
                .bind(subject.map(|subject| subject.environment.as_uuid()))
                .bind(subject.map(|subject| subject.reservation_id.as_uuid()))
                .bind(subject.map(|subject| subject.request_id.as_uuid()))
                .bind(subject.map(|subject| subject.item.as_str()))
                .bind(subject.map(|subject| subject.buyer.as_str()))
                .bind(&one.body)
                .execute(&mut *transaction)
                .await
                .map_err(&failed)?
                .rows_affected();
            if written == 0 {
                transaction.rollback().await.map_err(&failed)?;
                return Ok(EditOutcome::Taken(one.letter_id));
            }
            sqlx::query(
                "INSERT INTO letter_acts (letter_id, who, what, outcome, detail)
                 VALUES ($1, $2, 'edit', 'done', $3)",
            )
            .bind(one.letter_id)
            .bind(who)
            .bind(if one.letter_id == letter_id {
                String::new()
            } else {
                format!("was letter {letter_id}")
            })
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
        }
        transaction.commit().await.map_err(&failed)?;
        Ok(EditOutcome::Done)
    }
}
