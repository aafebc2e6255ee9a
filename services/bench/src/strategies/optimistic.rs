//! A version column: read, write if nobody was faster, else read again.
//!
//! On a hot item nearly everybody is outrun; jittered pauses that grow keep those who lost from
//! meeting again. After the last attempt the buyer is sent away.

use std::time::Duration;

use sqlx::PgConnection;

use super::database::{Reading, is_duplicate};
use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::Backends;

/// Far more than anybody needs on an item that is not hot.
const ATTEMPTS: u32 = 30;

/// The first pause lasts up to so long, and each further one up to twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

pub(super) async fn purchase(backends: &Backends, purchase: &Purchase) -> Result<Outcome, Trouble> {
    let mut longest = FIRST_PAUSE;
    for _ in 0..ATTEMPTS {
        // Given back during the pause: others can use it.
        let mut connection = backends.database.pool().acquire().await?;
        if let Some(outcome) = attempt(&mut connection, purchase).await? {
            return Ok(outcome);
        }
        drop(connection);
        tokio::time::sleep(longest.mul_f64(fastrand::f64())).await;
        longest = (longest * 2).min(LONGEST_PAUSE);
    }
    Err(Trouble::Outrun { item: purchase.item.clone(), attempts: ATTEMPTS })
}

/// `None` when somebody was faster.
async fn attempt(
    connection: &mut PgConnection,
    purchase: &Purchase,
) -> Result<Option<Outcome>, Trouble> {
    let reading: Option<Reading> = sqlx::query_as(include_str!("sql/read_available.sql"))
        .bind(&purchase.item)
        .bind(purchase.request_id)
        .fetch_optional(&mut *connection)
        .await?;
    let Reading { available, version, is_known } =
        reading.ok_or_else(|| Trouble::UnknownItem(purchase.item.clone()))?;
    if is_known {
        return Ok(Some(Outcome::Repeated));
    }
    if available < purchase.quantity {
        return Ok(Some(Outcome::SoldOut));
    }
    let sold = sqlx::query(include_str!("sql/sell_if_unchanged.sql"))
        .bind(purchase.request_id)
        .bind(&purchase.item)
        .bind(&purchase.buyer)
        .bind(purchase.quantity)
        .bind(version)
        .execute(&mut *connection)
        .await;
    match sold {
        Ok(sold) if sold.rows_affected() == 1 => Ok(Some(Outcome::Confirmed)),
        Ok(_) => Ok(None),
        Err(error) if is_duplicate(&error) => Ok(Some(Outcome::Repeated)),
        Err(error) => Err(error.into()),
    }
}
