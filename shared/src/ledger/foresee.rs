//! What the ledger would decide now, without deciding anything.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::rows::{unix_millis, unsigned};
use super::{Ledger, LedgerError};
use crate::domain::{
    BuyerId, Decision, ItemId, Order, OrderState, RequestId, Reservation, Standing, UnixMillis,
    Window, decide,
};

const DOING: &str = "foresee what would be decided";

/// What earlier pages would have decided; later ones stand behind them.
#[derive(Debug, Clone, Default)]
pub struct Foresight {
    sold: HashMap<ItemId, u64>,
    bought: HashMap<(ItemId, BuyerId), u64>,
    orders: HashMap<RequestId, Order>,
}

/// What the ledger says of some reservations and requests.
#[derive(Debug, Clone)]
pub struct Foreseen {
    /// One a reservation, in its order.
    pub decisions: Vec<Decision>,
    /// Orders that exist already, or would by then.
    pub orders: HashMap<RequestId, Order>,
    pub windows: HashMap<ItemId, Window>,
    pub now: UnixMillis,
}

type ItemColumns = (String, i64, Option<i64>, DateTime<Utc>, DateTime<Utc>);

impl Ledger {
    /// Decides reservations in memory, by the same rules as [`commit`](Ledger::commit), and reads
    /// the orders of other `requests` and the sales of other `items` on the way. Nobody is locked
    /// out, so the truth may be another one by the time that a message comes.
    pub async fn foresee(
        &self,
        reservations: &[Reservation],
        requests: &[RequestId],
        items: &[ItemId],
        earlier: &mut Foresight,
    ) -> Result<Foreseen, LedgerError> {
        let failed = self.failed(DOING);
        let now: DateTime<Utc> =
            sqlx::query_scalar("SELECT now()").fetch_one(&self.pool).await.map_err(&failed)?;
        let all_items: HashSet<&str> =
            reservations.iter().map(|r| &r.item).chain(items).map(ItemId::as_str).collect();
        let rows: Vec<ItemColumns> = sqlx::query_as(
            "SELECT item_id, available, limit_per_buyer, opens_at, closes_at FROM items
             WHERE item_id = ANY($1)",
        )
        .bind(all_items.into_iter().collect::<Vec<_>>())
        .fetch_all(&self.pool)
        .await
        .map_err(&failed)?;
        let (mut standings, mut windows) = (HashMap::new(), HashMap::new());
        for (item, available, limit, opens_at, closes_at) in rows {
            let item: ItemId = item.parse().map_err(LedgerError::corrupt)?;
            let gone = earlier.sold.get(&item).copied().unwrap_or(0);
            let standing = Standing {
                available: unsigned(available)?.saturating_sub(gone),
                limit_per_buyer: limit.map(unsigned).transpose()?,
            };
            let window = Window::new(unix_millis(opens_at), unix_millis(closes_at));
            windows.insert(item.clone(), window.map_err(LedgerError::corrupt)?);
            standings.insert(item, standing);
        }
        let all_requests: Vec<_> =
            reservations.iter().map(|r| &r.request_id).chain(requests).copied().collect();
        let mut orders = self.find_orders(&all_requests).await?;
        for request_id in &all_requests {
            if let Some(order) = earlier.orders.get(request_id) {
                orders.entry(*request_id).or_insert_with(|| order.clone());
            }
        }
        let mut bought = self.bought(&self.pool, reservations, &standings).await?;
        let buyers: HashSet<_> =
            reservations.iter().map(|r| (r.item.clone(), r.buyer.clone())).collect();
        for buyer in buyers {
            if let Some(units) = earlier.bought.get(&buyer) {
                *bought.entry(buyer).or_insert(0) += units;
            }
        }
        let decided = decide(reservations, orders.clone(), standings, bought);
        for position in &decided.new {
            if let Decision::Ordered(order) = &decided.decisions[*position] {
                earlier.note(order);
            }
        }
        let now = unix_millis(now);
        Ok(Foreseen { decisions: decided.decisions, orders, windows, now })
    }
}

impl Foresight {
    fn note(&mut self, order: &Order) {
        if order.state == OrderState::Confirmed {
            let units = order.quantity.units();
            *self.sold.entry(order.item.clone()).or_insert(0) += units;
            let buyer = (order.item.clone(), order.buyer.clone());
            *self.bought.entry(buyer).or_insert(0) += units;
        }
        self.orders.insert(order.request_id, order.clone());
    }
}
