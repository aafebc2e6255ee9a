//! The classic mistake, as the control: read what is left, and write what was read less one.
//!
//! Between the two, others have read the same number. Everybody gets an order, and the stock goes
//! down once for all of them. Nothing here helps it to fail: no pause, no barrier.

use super::database::Reading;
use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::Backends;

pub(super) async fn purchase(backends: &Backends, purchase: &Purchase) -> Result<Outcome, Trouble> {
    let mut connection = backends.database.pool().acquire().await?;
    let reading: Option<Reading> = sqlx::query_as(include_str!("sql/read_available.sql"))
        .bind(&purchase.item)
        .bind(purchase.request_id)
        .fetch_optional(&mut *connection)
        .await?;
    let Reading { available, is_known, .. } =
        reading.ok_or_else(|| Trouble::UnknownItem(purchase.item.clone()))?;
    if is_known {
        return Ok(Outcome::Repeated);
    }
    if available < purchase.quantity {
        return Ok(Outcome::SoldOut);
    }
    let sold = sqlx::query(include_str!("sql/overwrite_available.sql"))
        .bind(purchase.request_id)
        .bind(&purchase.item)
        .bind(&purchase.buyer)
        .bind(purchase.quantity)
        .bind(available - purchase.quantity)
        .execute(&mut *connection)
        .await?;
    Ok(if sold.rows_affected() == 1 { Outcome::Confirmed } else { Outcome::Repeated })
}
