//! Adds stock to a sale.

use uuid::Uuid;

use super::items::{Item, ItemRow};
use super::rows::signed;
use super::{Ledger, LedgerError};
use crate::domain::{ItemId, Sale};

/// What became of an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// The ledger has the units now; Redis follows by a correction.
    Added(Item),
    /// It had them before: this addition was made already.
    Already(Item),
    /// The item would have more than [`Sale::MAX_TOTAL`] units.
    TooMany(Item),
    /// The id belongs to an addition of another item, or of another number of units.
    OtherAddition,
    UnknownItem,
}

impl Ledger {
    /// Adds units once for each addition id.
    pub async fn add_stock(
        &self,
        item: &ItemId,
        addition_id: Uuid,
        units: u64,
    ) -> Result<Added, LedgerError> {
        let failed = self.failed("add stock");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        let row: Option<ItemRow> =
            sqlx::query_as("SELECT * FROM items WHERE item_id = $1 FOR UPDATE")
                .bind(item.as_str())
                .fetch_optional(&mut *transaction)
                .await
                .map_err(&failed)?;
        let Some(row) = row else { return Ok(Added::UnknownItem) };
        let before = Item::try_from(row)?;
        let made: Option<(String, i64)> =
            sqlx::query_as("SELECT item_id, units FROM additions WHERE addition_id = $1")
                .bind(addition_id)
                .fetch_optional(&mut *transaction)
                .await
                .map_err(&failed)?;
        if let Some((of_item, of_units)) = made {
            let is_same = of_item == item.as_str() && of_units == signed(units);
            return Ok(if is_same { Added::Already(before) } else { Added::OtherAddition });
        }
        if before.sale.total.saturating_add(units) > Sale::MAX_TOTAL {
            return Ok(Added::TooMany(before));
        }
        sqlx::query("INSERT INTO additions (addition_id, item_id, units) VALUES ($1, $2, $3)")
            .bind(addition_id)
            .bind(item.as_str())
            .bind(signed(units))
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
        let row: ItemRow = sqlx::query_as(
            "UPDATE items SET total = total + $2, available = available + $2,
                    version = version + 1, changed_at = now()
             WHERE item_id = $1 RETURNING *",
        )
        .bind(item.as_str())
        .bind(signed(units))
        .fetch_one(&mut *transaction)
        .await
        .map_err(&failed)?;
        let after = Item::try_from(row)?;
        transaction.commit().await.map_err(&failed)?;
        Ok(Added::Added(after))
    }
}
