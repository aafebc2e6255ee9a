//! Discards letters, in two steps: the intent first, the end once their stock went back.

use std::time::Duration;

use uuid::Uuid;

use super::claim_letters::LetterRun;
use super::letters::{KeptLetter, LetterRow, letter_columns};
use super::rows::signed;
use super::{Ledger, LedgerError};
use crate::config::limits::LETTER_LEASE;
use crate::domain::Reason;

impl Ledger {
    /// Takes those of these letters that are parked, or that somebody took and left lying, to
    /// discard them. From now on no replay takes them.
    pub async fn begin_discard(
        &self,
        run: &LetterRun,
        reason: &Reason,
        ids: &[Uuid],
    ) -> Result<Vec<KeptLetter>, LedgerError> {
        let statement = concat!(
            "WITH picked AS (
                 SELECT letter_id FROM dead_letters
                 WHERE letter_id = ANY($1) AND last_died_at < $3
                   AND state IN ('parked', 'replaying')
                   AND (claimed_until IS NULL OR claimed_until < now())
                 ORDER BY letter_id FOR UPDATE SKIP LOCKED
             ), claimed AS (
                 UPDATE dead_letters
                 SET discard_reason = coalesce(discard_reason, $6), run_id = $2, claimed_at = now(),
                     claimed_until = now() + $4 * interval '1 millisecond'
                 WHERE letter_id IN (SELECT letter_id FROM picked)
                 RETURNING *
             ), noted AS (
                 INSERT INTO letter_acts (letter_id, run_id, who, what, detail)
                 SELECT letter_id, $2, $5, 'discard', discard_reason FROM claimed
             )
             SELECT ",
            letter_columns!(),
            " FROM claimed ORDER BY letter_id"
        );
        let rows: Vec<LetterRow> = sqlx::query_as(statement)
            .bind(ids)
            .bind(run.run_id)
            .bind(run.began)
            .bind(milliseconds(LETTER_LEASE))
            .bind(&run.who)
            .bind(reason.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("begin to discard dead letters"))?;
        rows.into_iter().map(KeptLetter::try_from).collect()
    }

    /// Notes that nothing is left to do for these letters, and how each ended.
    pub async fn end_discard(
        &self,
        run: &LetterRun,
        ends: &[(Uuid, &'static str)],
    ) -> Result<(), LedgerError> {
        let (ids, outcomes): (Vec<Uuid>, Vec<&str>) = ends.iter().copied().unzip();
        sqlx::query(
            "WITH discarded AS (
                 UPDATE dead_letters
                 SET state = 'discarded', settled_at = now(), claimed_until = NULL
                 WHERE letter_id = ANY($1) AND run_id = $2 AND discard_reason IS NOT NULL
                   AND state IN ('parked', 'replaying')
             )
             UPDATE letter_acts SET outcome = ended.outcome
             FROM unnest($1::uuid[], $3::text[]) AS ended (letter_id, outcome)
             WHERE letter_acts.letter_id = ended.letter_id AND run_id = $2
               AND what = 'discard' AND letter_acts.outcome = 'begun'",
        )
        .bind(ids)
        .bind(run.run_id)
        .bind(outcomes)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(self.failed("discard dead letters"))
    }

    /// Up to `most` letters that nobody but the reconciler discards: those whose discard was cut
    /// short, and, with a patience, parked reservations whose sale is over and who have waited for so
    /// long since.
    pub async fn letters_to_discard(
        &self,
        patience: Option<Duration>,
        most: u32,
    ) -> Result<Vec<Uuid>, LedgerError> {
        sqlx::query_scalar(
            "SELECT letter_id FROM dead_letters
             LEFT JOIN items USING (item_id)
             WHERE state = 'parked' AND (claimed_until IS NULL OR claimed_until < now())
               AND (discard_reason IS NOT NULL
                    OR (kind = 'reservation'
                        AND greatest(closes_at, last_died_at) + $1 * interval '1 millisecond'
                            < now()))
             ORDER BY letter_id LIMIT $2",
        )
        .bind(patience.map(milliseconds))
        .bind(i64::from(most))
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("look for dead letters to discard"))
    }

    /// Forgets up to `most` letters that were settled longer ago than this; says how many.
    pub async fn forget_letters(&self, kept: Duration, most: u32) -> Result<u64, LedgerError> {
        let forgotten = sqlx::query(
            "DELETE FROM dead_letters WHERE letter_id IN (
                 SELECT letter_id FROM dead_letters
                 WHERE settled_at < now() - $1 * interval '1 millisecond'
                 ORDER BY settled_at LIMIT $2 FOR UPDATE SKIP LOCKED
             )",
        )
        .bind(milliseconds(kept))
        .bind(i64::from(most))
        .execute(&self.pool)
        .await
        .map_err(self.failed("forget settled dead letters"))?;
        Ok(forgotten.rows_affected())
    }
}

fn milliseconds(duration: Duration) -> i64 {
    signed(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
