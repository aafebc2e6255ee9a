//! Letters, page by page.

use uuid::Uuid;

use super::letter_filter::{LetterFilter, bind_filter, letters_matching};
use super::letters::{KeptLetter, LetterRow, letter_columns};
use super::rows::unsigned;
use super::{Ledger, LedgerError};

/// In which order letters are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterSort {
    /// By the latest death, the newest first.
    Newest,
    /// By the latest death, the oldest first.
    Oldest,
    /// Those that died most often first.
    Attempts,
    /// By their ids: an order that nothing changes while the letters are worked on.
    Id,
}

/// Pages are cut by the last letter of the page before, so that a late page costs what the first did.
macro_rules! page {
    ($behind:literal, $order:literal) => {
        concat!(
            "SELECT ",
            letter_columns!(),
            " FROM dead_letters WHERE ",
            letters_matching!(),
            " AND ($10::uuid IS NULL OR ",
            $behind,
            ") ORDER BY ",
            $order,
            " LIMIT $11"
        )
    };
}

impl Ledger {
    /// Up to `most` letters behind the letter `after`.
    pub async fn list_letters(
        &self,
        filter: &LetterFilter,
        sort: LetterSort,
        after: Option<Uuid>,
        most: u32,
    ) -> Result<Vec<KeptLetter>, LedgerError> {
        let statement = match sort {
            LetterSort::Newest => page!(
                "(last_died_at, letter_id) < (SELECT l.last_died_at, l.letter_id
                     FROM dead_letters AS l WHERE l.letter_id = $10)",
                "last_died_at DESC, letter_id DESC"
            ),
            LetterSort::Oldest => page!(
                "(last_died_at, letter_id) > (SELECT l.last_died_at, l.letter_id
                     FROM dead_letters AS l WHERE l.letter_id = $10)",
                "last_died_at, letter_id"
            ),
            LetterSort::Attempts => page!(
                "(attempts, letter_id) < (SELECT l.attempts, l.letter_id
                     FROM dead_letters AS l WHERE l.letter_id = $10)",
                "attempts DESC, letter_id DESC"
            ),
            LetterSort::Id => page!("letter_id > $10", "letter_id"),
        };
        let rows: Vec<LetterRow> = bind_filter!(sqlx::query_as(statement), filter)
            .bind(after)
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("list dead letters"))?;
        rows.into_iter().map(KeptLetter::try_from).collect()
    }

    /// How many letters there are.
    pub async fn count_letters(&self, filter: &LetterFilter) -> Result<u64, LedgerError> {
        let statement = concat!("SELECT count(*) FROM dead_letters WHERE ", letters_matching!());
        let count: i64 = bind_filter!(sqlx::query_scalar(statement), filter)
            .fetch_one(&self.pool)
            .await
            .map_err(self.failed("count dead letters"))?;
        unsigned(count)
    }
}
