//! The ledger's side of the books, at one instant.

use super::rows::unsigned;
use super::{Ledger, LedgerError};
use crate::domain::{Books, ItemId};

type Row = (String, i64, i64, Option<i64>, i64, i64);

impl Ledger {
    /// The books of items as far as the ledger knows them: as if Redis agreed and held nothing.
    pub async fn sold_books(&self, items: &[ItemId]) -> Result<Vec<(ItemId, Books)>, LedgerError> {
        let ids: Vec<&str> = items.iter().map(ItemId::as_str).collect();
        let rows: Vec<Row> = sqlx::query_as(include_str!("sql/sold_books.sql"))
            .bind(ids)
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("read the books"))?;
        rows.into_iter()
            .map(|(item, total, available, limit, confirmed_units, most_by_one_buyer)| {
                let ledger_available = unsigned(available)?;
                let books = Books {
                    total: unsigned(total)?,
                    confirmed_units: unsigned(confirmed_units)?,
                    ledger_available,
                    redis_available: Some(ledger_available),
                    held: 0,
                    most_by_one_buyer: unsigned(most_by_one_buyer)?,
                    limit_per_buyer: limit.map(unsigned).transpose()?,
                };
                Ok((item.parse().map_err(LedgerError::corrupt)?, books))
            })
            .collect()
    }
}
