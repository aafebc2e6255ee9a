//! Takes letters in that were kept elsewhere. What is here already is never overwritten.

use super::letters::KeptLetter;
use super::rows::signed;
use super::{Ledger, LedgerError};

impl Ledger {
    /// Inserts letters that are not here, all or none; says for each whether it is new.
    pub async fn import_letters(
        &self,
        who: &str,
        letters: &[KeptLetter],
    ) -> Result<Vec<bool>, LedgerError> {
        let failed = self.failed("import dead letters");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let mut new = Vec::with_capacity(letters.len());
        for letter in letters {
            let subject = letter.subject.as_ref();
            let inserted = sqlx::query(include_str!("sql/import_letter.sql"))
                .bind(letter.letter_id)
                .bind(letter.kind.as_str())
                .bind(subject.map(|subject| subject.environment.as_uuid()))
                .bind(subject.map(|subject| subject.reservation_id.as_uuid()))
                .bind(subject.map(|subject| subject.request_id.as_uuid()))
                .bind(subject.map(|subject| subject.item.as_str()))
                .bind(subject.map(|subject| subject.buyer.as_str()))
                .bind(&letter.reason)
                .bind(&letter.error)
                .bind(&letter.fingerprint)
                .bind(&letter.source)
                .bind(&letter.headers)
                .bind(&letter.body)
                .bind(letter.original.as_deref())
                .bind(signed(letter.attempts))
                .bind(letter.first_died_at)
                .bind(letter.last_died_at)
                .bind(letter.state.as_str())
                .bind(letter.settled_at)
                .bind(who)
                .execute(&mut *transaction)
                .await
                .map_err(&failed)?
                .rows_affected();
            new.push(inserted == 1);
        }
        transaction.commit().await.map_err(&failed)?;
        Ok(new)
    }
}
