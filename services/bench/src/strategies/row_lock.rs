//! `SELECT … FOR UPDATE`, then decide, then write: the row lock is held over the round trips between.

use super::database::Reading;
use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::Backends;

pub(super) async fn purchase(backends: &Backends, purchase: &Purchase) -> Result<Outcome, Trouble> {
    let mut transaction = backends.database.pool().begin().await?;
    let reading: Option<Reading> = sqlx::query_as(include_str!("sql/lock_available.sql"))
        .bind(&purchase.item)
        .bind(purchase.request_id)
        .fetch_optional(&mut *transaction)
        .await?;
    let Reading { available, is_known, .. } =
        reading.ok_or_else(|| Trouble::UnknownItem(purchase.item.clone()))?;
    if is_known || available < purchase.quantity {
        transaction.rollback().await?;
        return Ok(if is_known { Outcome::Repeated } else { Outcome::SoldOut });
    }
    let sold = sqlx::query(include_str!("sql/sell_locked.sql"))
        .bind(purchase.request_id)
        .bind(&purchase.item)
        .bind(&purchase.buyer)
        .bind(purchase.quantity)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(if sold.rows_affected() == 1 { Outcome::Confirmed } else { Outcome::Repeated })
}
