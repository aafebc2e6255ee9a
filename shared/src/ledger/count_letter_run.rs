//! How the letters of a run have ended so far.

use super::claim_letters::LetterRun;
use super::rows::unsigned;
use super::{Ledger, LedgerError};

/// The letters that a run has taken, counted by their ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    pub taken: u64,
    /// Back in the dead letters.
    pub died_again: u64,
    /// Their requests were decided before; nothing new.
    pub repeated: u64,
    pub confirmed: u64,
    /// The ledger decided now, and did not sell.
    pub refused: u64,
    /// Nothing has been heard of them yet.
    pub undecided: u64,
}

impl RunCounts {
    /// Letters that did not end well.
    pub fn failures(&self) -> u64 {
        self.died_again + self.refused
    }

    /// Letters that have ended.
    pub fn ended(&self) -> u64 {
        self.taken - self.undecided
    }
}

impl Ledger {
    /// Counts a run's letters.
    pub async fn count_letter_run(&self, run: &LetterRun) -> Result<RunCounts, LedgerError> {
        let (taken, died_again, repeated, confirmed, refused, undecided): (
            i64,
            i64,
            i64,
            i64,
            i64,
            i64,
        ) = sqlx::query_as(include_str!("sql/count_letter_run.sql"))
            .bind(run.run_id)
            .fetch_one(&self.pool)
            .await
            .map_err(self.failed("count a run's letters"))?;
        Ok(RunCounts {
            taken: unsigned(taken)?,
            died_again: unsigned(died_again)?,
            repeated: unsigned(repeated)?,
            confirmed: unsigned(confirmed)?,
            refused: unsigned(refused)?,
            undecided: unsigned(undecided)?,
        })
    }
}
