//! Pauses, resumes and ends a sale. Redis is told afterwards.

use uuid::Uuid;

use super::items::{Item, ItemRow};
use super::{Ledger, LedgerError};
use crate::domain::ItemId;

/// What became of a change; the item is as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    Changed(Item),
    /// It was so before.
    Already(Item),
    /// Another pause is in force: only its own id ends it.
    OtherPause(Item),
    UnknownItem,
}

impl Ledger {
    /// Pauses a sale under an id that alone can resume it. A sale that is paused already stays so.
    pub async fn pause(
        &self,
        item: &ItemId,
        pause_id: Uuid,
        reason: &str,
    ) -> Result<Changed, LedgerError> {
        let row: Option<ItemRow> = sqlx::query_as(
            "UPDATE items SET pause_id = $2, pause_reason = $3, version = version + 1,
                    changed_at = now()
             WHERE item_id = $1 AND pause_id IS NULL RETURNING *",
        )
        .bind(item.as_str())
        .bind(pause_id)
        .bind(reason)
        .fetch_optional(&self.pool)
        .await
        .map_err(self.failed("pause a sale"))?;
        self.changed(item, row, |item| match &item.pause {
            Some(pause) if pause.pause_id == pause_id => Changed::Already(item),
            _ => Changed::OtherPause(item),
        })
        .await
    }

    /// Ends the pause that has this id.
    pub async fn resume(&self, item: &ItemId, pause_id: Uuid) -> Result<Changed, LedgerError> {
        let row: Option<ItemRow> = sqlx::query_as(
            "UPDATE items SET pause_id = NULL, pause_reason = NULL, version = version + 1,
                    changed_at = now()
             WHERE item_id = $1 AND pause_id = $2 RETURNING *",
        )
        .bind(item.as_str())
        .bind(pause_id)
        .fetch_optional(&self.pool)
        .await
        .map_err(self.failed("resume a sale"))?;
        self.changed(item, row, |item| match &item.pause {
            None => Changed::Already(item),
            Some(_) => Changed::OtherPause(item),
        })
        .await
    }

    /// Ends a sale now; one that has not opened yet never does.
    pub async fn end_sale(&self, item: &ItemId) -> Result<Changed, LedgerError> {
        let row: Option<ItemRow> = sqlx::query_as(
            "UPDATE items SET opens_at = least(opens_at, now() - interval '1 millisecond'),
                    closes_at = now(), version = version + 1, changed_at = now()
             WHERE item_id = $1 AND closes_at > now() RETURNING *",
        )
        .bind(item.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(self.failed("end a sale"))?;
        self.changed(item, row, Changed::Already).await
    }

    async fn changed(
        &self,
        item: &ItemId,
        row: Option<ItemRow>,
        unchanged: impl FnOnce(Item) -> Changed,
    ) -> Result<Changed, LedgerError> {
        if let Some(row) = row {
            return Ok(Changed::Changed(Item::try_from(row)?));
        }
        Ok(self.find_item(item).await?.map_or(Changed::UnknownItem, unchanged))
    }
}
