//! Takes letters to replay them: the intent is written before anything is sent.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::letter_filter::{LetterFilter, bind_filter, letters_matching};
use super::letters::{KeptLetter, LetterRow, letter_columns};
use super::rows::{signed, unsigned};
use super::{Ledger, LedgerError};
use crate::config::limits::LETTER_LEASE;
use crate::domain::EnvironmentId;

/// One run of a command on letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterRun {
    pub run_id: Uuid,
    /// Who began it.
    pub who: String,
    /// By the ledger's clock; a letter that died since then is not this run's.
    pub began: DateTime<Utc>,
}

impl Ledger {
    /// Begins a run of a command on letters.
    pub async fn begin_letter_run(&self, who: &str) -> Result<LetterRun, LedgerError> {
        let began = sqlx::query_scalar("SELECT now()")
            .fetch_one(&self.pool)
            .await
            .map_err(self.failed("begin a run on dead letters"))?;
        Ok(LetterRun { run_id: Uuid::now_v7(), who: who.to_owned(), began })
    }

    /// Ids of up to `most` letters that fit, in their order, behind `after`.
    pub async fn letter_ids(
        &self,
        filter: &LetterFilter,
        after: Option<Uuid>,
        most: u32,
    ) -> Result<Vec<Uuid>, LedgerError> {
        let statement = concat!(
            "SELECT letter_id FROM dead_letters WHERE ",
            letters_matching!(),
            " AND ($10::uuid IS NULL OR letter_id > $10) ORDER BY letter_id LIMIT $11"
        );
        bind_filter!(sqlx::query_scalar(statement), filter)
            .bind(after)
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("list dead letters"))
    }

    /// Takes those of these letters that are parked, or that somebody took and left lying, and
    /// returns them. What cannot be read, or belongs to another environment, stays. What another run has in its hands is passed over: nobody waits, and no letter
    /// is in two runs' hands at the same time.
    pub async fn claim_letters(
        &self,
        run: &LetterRun,
        environment: EnvironmentId,
        ids: &[Uuid],
    ) -> Result<Vec<KeptLetter>, LedgerError> {
        let statement = concat!(
            "WITH picked AS (
                 SELECT letter_id FROM dead_letters
                 WHERE letter_id = ANY($1) AND last_died_at < $3 AND discard_reason IS NULL
                   AND kind <> 'unreadable' AND environment_id = $6
                   AND (state = 'parked' OR (state = 'replaying' AND claimed_until < now()))
                 ORDER BY letter_id FOR UPDATE SKIP LOCKED
             ), claimed AS (
                 UPDATE dead_letters
                 SET state = 'replaying', run_id = $2, claimed_at = now(),
                     claimed_until = now() + $4 * interval '1 millisecond'
                 WHERE letter_id IN (SELECT letter_id FROM picked)
                 RETURNING *
             ), noted AS (
                 INSERT INTO letter_acts (letter_id, run_id, who, what)
                 SELECT letter_id, $2, $5, 'replay' FROM claimed
             )
             SELECT ",
            letter_columns!(),
            " FROM claimed ORDER BY letter_id"
        );
        let rows: Vec<LetterRow> = sqlx::query_as(statement)
            .bind(ids)
            .bind(run.run_id)
            .bind(run.began)
            .bind(signed(u64::try_from(LETTER_LEASE.as_millis()).unwrap_or(u64::MAX)))
            .bind(&run.who)
            .bind(environment.as_uuid())
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("take dead letters"))?;
        rows.into_iter().map(KeptLetter::try_from).collect()
    }

    /// How many letters that fit are in some run's hands right now.
    pub async fn letters_in_hand(&self, filter: &LetterFilter) -> Result<u64, LedgerError> {
        let statement = concat!(
            "SELECT count(*) FROM dead_letters WHERE ",
            letters_matching!(),
            " AND claimed_until >= now()"
        );
        let count: i64 = bind_filter!(sqlx::query_scalar(statement), filter)
            .fetch_one(&self.pool)
            .await
            .map_err(self.failed("count dead letters that somebody works on"))?;
        unsigned(count)
    }

    /// How many letters that fit can never be sent as they are: unreadable ones, and those of
    /// another environment.
    pub async fn unsendable_letters(
        &self,
        filter: &LetterFilter,
        environment: EnvironmentId,
    ) -> Result<u64, LedgerError> {
        let statement = concat!(
            "SELECT count(*) FROM dead_letters WHERE ",
            letters_matching!(),
            " AND (kind = 'unreadable' OR environment_id IS DISTINCT FROM $10)"
        );
        let count: i64 = bind_filter!(sqlx::query_scalar(statement), filter)
            .bind(environment.as_uuid())
            .fetch_one(&self.pool)
            .await
            .map_err(self.failed("count dead letters that cannot be sent"))?;
        unsigned(count)
    }

    /// Puts letters back that this run has taken and not sent.
    pub async fn put_letters_back(&self, run: &LetterRun, ids: &[Uuid]) -> Result<(), LedgerError> {
        sqlx::query(
            "WITH put_back AS (
                 UPDATE dead_letters SET state = 'parked', run_id = NULL, claimed_until = NULL
                 WHERE letter_id = ANY($1) AND state = 'replaying' AND run_id = $2
             )
             UPDATE letter_acts SET outcome = 'not_sent'
             WHERE letter_id = ANY($1) AND run_id = $2 AND what = 'replay' AND outcome = 'begun'",
        )
        .bind(ids)
        .bind(run.run_id)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(self.failed("put dead letters back"))
    }

    /// Notes that the broker has these letters. One that has died again meanwhile stays parked.
    pub async fn letters_sent(&self, run: &LetterRun, ids: &[Uuid]) -> Result<(), LedgerError> {
        sqlx::query(
            "WITH sent AS (
                 UPDATE dead_letters
                 SET state = 'replayed', settled_at = now(), claimed_until = NULL
                 WHERE letter_id = ANY($1) AND state = 'replaying' AND run_id = $2
             )
             UPDATE letter_acts SET outcome = 'sent'
             WHERE letter_id = ANY($1) AND run_id = $2 AND what = 'replay' AND outcome = 'begun'",
        )
        .bind(ids)
        .bind(run.run_id)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(self.failed("note that dead letters are sent"))
    }
}
