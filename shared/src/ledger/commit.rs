//! Decides a micro-batch of reservations, in one transaction.

use std::collections::{HashMap, HashSet};

use sqlx::{Executor, Postgres, Transaction};
use uuid::Uuid;

use super::rows::{signed, state_columns, timestamp, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, Decided, Decision, ItemId, Order, Reservation, Standing, decide};

const DOING: &str = "commit reservations";

impl Ledger {
    /// Decides reservations in message order; the answer has one decision for each.
    ///
    /// After an error nothing is known: the transaction may have been committed. Asking again finds
    /// what was decided and repeats it.
    pub async fn commit(&self, reservations: &[Reservation]) -> Result<Vec<Decision>, LedgerError> {
        if reservations.is_empty() {
            return Ok(Vec::new());
        }
        let failed = self.failed(DOING);
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        // Before the locks, which others wait for. An order that somebody else writes in between makes
        // the batch fail on its primary key, and the next attempt reads it.
        let requests: Vec<_> = reservations.iter().map(|r| r.request_id).collect();
        let known = self.orders_of(&mut *transaction, &requests).await?;
        let standings = self.lock_items(&mut transaction, reservations).await?;
        let bought = self.bought(&mut *transaction, reservations, &standings).await?;
        let decided = decide(reservations, known, standings, bought);
        self.write_decisions(&mut transaction, reservations, &decided).await?;
        transaction.commit().await.map_err(&failed)?;
        Ok(decided.decisions)
    }

    /// Row locks in item order, so that two batches never wait for each other in a circle.
    async fn lock_items(
        &self,
        transaction: &mut Transaction<'_, Postgres>,
        reservations: &[Reservation],
    ) -> Result<HashMap<ItemId, Standing>, LedgerError> {
        let items: HashSet<&str> = reservations.iter().map(|r| r.item.as_str()).collect();
        let rows: Vec<(String, i64, Option<i64>)> = sqlx::query_as(
            "SELECT item_id, available, limit_per_buyer FROM items
             WHERE item_id = ANY($1) ORDER BY item_id FOR UPDATE",
        )
        .bind(items.into_iter().collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await
        .map_err(self.failed(DOING))?;
        rows.into_iter()
            .map(|(item, available, limit)| {
                let standing = Standing {
                    available: unsigned(available)?,
                    limit_per_buyer: limit.map(unsigned).transpose()?,
                };
                Ok((item.parse().map_err(LedgerError::corrupt)?, standing))
            })
            .collect()
    }

    /// Only items with a limit need to know.
    pub(super) async fn bought<'c>(
        &self,
        executor: impl Executor<'c, Database = Postgres>,
        reservations: &[Reservation],
        standings: &HashMap<ItemId, Standing>,
    ) -> Result<HashMap<(ItemId, BuyerId), u64>, LedgerError> {
        let limited =
            |item| standings.get(item).is_some_and(|standing| standing.limit_per_buyer.is_some());
        let (items, buyers): (Vec<&str>, Vec<&str>) = reservations
            .iter()
            .filter(|reservation| limited(&reservation.item))
            .map(|reservation| (reservation.item.as_str(), reservation.buyer.as_str()))
            .unzip();
        if items.is_empty() {
            return Ok(HashMap::new());
        }
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as(include_str!("sql/bought_by_buyers.sql"))
                .bind(items)
                .bind(buyers)
                .fetch_all(executor)
                .await
                .map_err(self.failed(DOING))?;
        rows.into_iter()
            .map(|(item, buyer, units)| {
                let item = item.parse().map_err(LedgerError::corrupt)?;
                let buyer = buyer.parse().map_err(LedgerError::corrupt)?;
                Ok(((item, buyer), unsigned(units)?))
            })
            .collect()
    }

    /// Orders and what is left of their items, in one statement: each round trip is one more moment
    /// in which the locks are held and nothing happens.
    async fn write_decisions(
        &self,
        transaction: &mut Transaction<'_, Postgres>,
        reservations: &[Reservation],
        decided: &Decided,
    ) -> Result<(), LedgerError> {
        if decided.new.is_empty() {
            return Ok(());
        }
        let mut columns = OrderColumns::default();
        for position in &decided.new {
            if let Decision::Ordered(order) = &decided.decisions[*position] {
                columns.push(&reservations[*position], order);
            }
        }
        let (mut items, mut units, mut reserved_at) = (Vec::new(), Vec::new(), Vec::new());
        for (item, change) in &decided.changes {
            items.push(item.as_str());
            units.push(signed(change.sold));
            reserved_at.push(change.decided_until.map(timestamp));
        }
        let changed = sqlx::query(include_str!("sql/write_decisions.sql"))
            .bind(columns.request_ids)
            .bind(columns.reservation_ids)
            .bind(columns.items)
            .bind(columns.buyers)
            .bind(columns.quantities)
            .bind(columns.states)
            .bind(columns.reasons)
            .bind(columns.epochs)
            .bind(columns.reserved_at)
            .bind(&items)
            .bind(units)
            .bind(reserved_at)
            .execute(&mut **transaction)
            .await
            .map_err(self.failed(DOING))?
            .rows_affected();
        if changed == items.len() as u64 {
            Ok(())
        } else {
            Err(LedgerError::Interfered { doing: "committing reservations" })
        }
    }
}

/// New orders, column by column.
#[derive(Default)]
struct OrderColumns<'a> {
    request_ids: Vec<Uuid>,
    reservation_ids: Vec<Uuid>,
    items: Vec<&'a str>,
    buyers: Vec<&'a str>,
    quantities: Vec<i64>,
    states: Vec<&'static str>,
    reasons: Vec<Option<String>>,
    epochs: Vec<i64>,
    reserved_at: Vec<chrono::DateTime<chrono::Utc>>,
}

impl<'a> OrderColumns<'a> {
    fn push(&mut self, reservation: &'a Reservation, order: &Order) {
        let (state, reason) = state_columns(&order.state);
        self.request_ids.push(reservation.request_id.as_uuid());
        self.reservation_ids.push(reservation.reservation_id.as_uuid());
        self.items.push(reservation.item.as_str());
        self.buyers.push(reservation.buyer.as_str());
        self.quantities.push(signed(reservation.quantity.units()));
        self.states.push(state);
        self.reasons.push(reason);
        self.epochs.push(signed(reservation.epoch));
        self.reserved_at.push(timestamp(reservation.reserved_at));
    }
}
