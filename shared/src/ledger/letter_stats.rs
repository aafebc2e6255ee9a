//! Letters, counted by what they died of.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::letter_filter::{LetterFilter, bind_filter, letters_matching};
use super::{Ledger, LedgerError};

/// Letters of one reason and state.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ReasonCount {
    pub reason: String,
    pub state: String,
    pub letters: i64,
}

/// Letters whose errors are the same but for ids and numbers.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ErrorCount {
    pub fingerprint: String,
    pub reason: String,
    pub letters: i64,
    pub items: i64,
    pub first_died_at: DateTime<Utc>,
    pub last_died_at: DateTime<Utc>,
    /// One of them, to look at.
    pub example: Uuid,
}

impl Ledger {
    /// Letters by reason and state, the most first.
    pub async fn letters_by_reason(
        &self,
        filter: &LetterFilter,
    ) -> Result<Vec<ReasonCount>, LedgerError> {
        let statement = concat!(
            "SELECT reason, state, count(*) AS letters FROM dead_letters WHERE ",
            letters_matching!(),
            " GROUP BY reason, state ORDER BY letters DESC, reason, state"
        );
        bind_filter!(sqlx::query_as(statement), filter)
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("count dead letters by reason"))
    }

    /// Letters by the fingerprint of their error, the `most` frequent ones.
    pub async fn letters_by_error(
        &self,
        filter: &LetterFilter,
        most: u32,
    ) -> Result<Vec<ErrorCount>, LedgerError> {
        let statement = concat!(
            "SELECT fingerprint, reason, count(*) AS letters, count(DISTINCT item_id) AS items,
                    min(first_died_at) AS first_died_at, max(last_died_at) AS last_died_at,
                    min(letter_id::text)::uuid AS example
             FROM dead_letters WHERE ",
            letters_matching!(),
            " GROUP BY fingerprint, reason ORDER BY letters DESC, fingerprint, reason LIMIT $10"
        );
        bind_filter!(sqlx::query_as(statement), filter)
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("count dead letters by error"))
    }
}
