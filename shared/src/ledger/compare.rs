//! What a comparison of Redis with the ledger needs to know.

use std::collections::{HashMap, HashSet};

use sqlx::FromRow;
use uuid::Uuid;

use super::rows::{signed, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, ItemId, LedgerSide, RequestId, ReservationId};

#[derive(FromRow)]
struct Row {
    total: i64,
    available: i64,
    is_limited: bool,
    confirmed_holds: Vec<Uuid>,
    buyers: Vec<String>,
    units: Vec<i64>,
}

impl Ledger {
    /// An item, which of these holds are confirmed under their own reservation ids, and what these
    /// buyers have confirmed, all at one instant; `None` when there is no such item.
    pub async fn compare(
        &self,
        item: &ItemId,
        holds: &[(RequestId, ReservationId)],
        buyers: &[BuyerId],
    ) -> Result<Option<LedgerSide>, LedgerError> {
        let (requests, reservations): (Vec<Uuid>, Vec<Uuid>) =
            holds.iter().map(|(request, hold)| (request.as_uuid(), hold.as_uuid())).unzip();
        let row: Option<Row> = sqlx::query_as(include_str!("sql/compare_item.sql"))
            .bind(item.as_str())
            .bind(requests)
            .bind(reservations)
            .bind(buyers.iter().map(BuyerId::as_str).collect::<Vec<_>>())
            .fetch_optional(&self.pool)
            .await
            .map_err(self.failed("compare an item with Redis"))?;
        let Some(row) = row else { return Ok(None) };
        let confirmed_holds: HashSet<_> =
            row.confirmed_holds.into_iter().map(ReservationId::from_uuid).collect();
        let totals = row.buyers.into_iter().zip(row.units).map(|(buyer, units)| {
            Ok((buyer.parse().map_err(LedgerError::corrupt)?, unsigned(units)?))
        });
        Ok(Some(LedgerSide {
            available: unsigned(row.available)?,
            confirmed_units: unsigned(row.total - row.available)?,
            is_limited: row.is_limited,
            confirmed_holds,
            totals: totals.collect::<Result<HashMap<_, _>, LedgerError>>()?,
        }))
    }

    /// What buyers have confirmed of an item: up to `most` of them after `after`, in the order of
    /// their ids.
    pub async fn list_totals(
        &self,
        item: &ItemId,
        after: Option<&BuyerId>,
        most: usize,
    ) -> Result<Vec<(BuyerId, u64)>, LedgerError> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "SELECT buyer_id, coalesce(sum(quantity) FILTER (WHERE state = 'confirmed'), 0)::bigint
             FROM orders WHERE item_id = $1 AND buyer_id > $2
             GROUP BY buyer_id ORDER BY buyer_id LIMIT $3",
        )
        .bind(item.as_str())
        .bind(after.map_or("", BuyerId::as_str))
        .bind(signed(most as u64))
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("list totals of buyers"))?;
        rows.into_iter()
            .map(|(buyer, units)| {
                Ok((buyer.parse().map_err(LedgerError::corrupt)?, unsigned(units)?))
            })
            .collect()
    }
}
