//! What ingress needs to know of items before it asks Redis.

use chrono::{DateTime, Utc};

use super::items::{Item, ItemRow};
use super::{Ledger, LedgerError};

/// Items whose terms have changed, and where to go on from.
#[derive(Debug, Clone)]
pub struct CatalogPage {
    pub items: Vec<Item>,
    /// Pass it to the next call.
    pub read_at: DateTime<Utc>,
}

impl Ledger {
    /// Items whose terms have changed since `since`, or all items. Changes become visible when
    /// their transaction ends but carry the time at which it began, so the last 30 s are read
    /// again: no transaction may last that long.
    pub async fn catalog(&self, since: Option<DateTime<Utc>>) -> Result<CatalogPage, LedgerError> {
        let failed = self.failed("read the catalog");
        let read_at: DateTime<Utc> =
            sqlx::query_scalar("SELECT now()").fetch_one(&self.pool).await.map_err(&failed)?;
        let rows: Vec<ItemRow> = sqlx::query_as(
            "SELECT * FROM items
             WHERE $1::timestamptz IS NULL OR changed_at > $1 - interval '30 seconds'",
        )
        .bind(since)
        .fetch_all(&self.pool)
        .await
        .map_err(&failed)?;
        let items = rows.into_iter().map(Item::try_from).collect::<Result<_, _>>()?;
        Ok(CatalogPage { items, read_at })
    }
}
