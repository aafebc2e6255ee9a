//! The ledger's verbs on a real PostgreSQL.

mod books;
mod commit;
mod contest;
mod errors;
mod expire;
mod fence;
mod items;
mod letters;
mod migrate;
mod schema_law;
mod store;
mod warm;

use std::time::Duration;

use shared::config;
use shared::devstack::World;
use shared::domain::{
    BuyerId, Decision, ItemId, Order, OrderState, Quantity, Reason, RequestId, Reservation,
    ReservationId, Sale, UnixMillis, Window,
};
use shared::ledger::{Expiry, Item, Ledger, OrderCounts, PutOutcome};

use crate::scratch::Private;

const OPENS_AT: UnixMillis = UnixMillis(1_800_000_000_000);

/// A ledger of the test's own.
struct Books {
    ledger: Ledger,
    config: config::Ledger,
}

impl Books {
    async fn new() -> Self {
        let World { config } = World::new().await;
        let ledger = Ledger::connect(&config.ledger).expect("a URL");
        Self { ledger, config: config.ledger }
    }

    /// With one item, `shoe`, on sale.
    async fn selling(total: u64, limit: Option<u64>) -> Self {
        let books = Self::new().await;
        books.put("shoe", total, limit).await;
        books
    }

    async fn put(&self, item: &str, total: u64, limit: Option<u64>) {
        let outcome = self.ledger.put_item(&sale(item, total, limit), None).await;
        assert_eq!(outcome.expect("an answer"), PutOutcome::Created);
    }

    /// Raises the epoch, as the holder of no lock in particular.
    async fn begin_warm(&self, item: &str) -> u64 {
        let begun = self.ledger.begin_warm(&item_id(item), 0, 0, None).await;
        begun.expect("an answer").expect("an item")
    }

    async fn commit(&self, reservations: &[Reservation]) -> Vec<Decision> {
        self.ledger.commit(reservations).await.expect("an answer")
    }

    async fn commit_one(&self, reservation: &Reservation) -> Decision {
        let decisions = self.commit(std::slice::from_ref(reservation)).await;
        let [decision] = decisions.try_into().expect("one");
        decision
    }

    async fn item(&self, item: &str) -> Item {
        let found = self.ledger.find_item(&item_id(item)).await;
        found.expect("an answer").expect("an item")
    }

    async fn count(&self, item: &str) -> OrderCounts {
        self.ledger.count_orders(&item_id(item)).await.expect("an answer")
    }

    async fn order(&self, request_id: RequestId) -> Option<Order> {
        self.ledger.find_order(request_id).await.expect("an answer")
    }

    async fn expire(&self, reservation: &Reservation) -> Option<Order> {
        self.ledger.expire(&expiry(reservation)).await.expect("an answer")
    }

    /// The counter agrees with the orders, counted one by one.
    async fn balance(&self, item: &str) {
        let (row, counts) = (self.item(item).await, self.count(item).await);
        assert_eq!(row.available + counts.confirmed_units, row.sale.total);
    }
}

fn item_id(item: &str) -> ItemId {
    item.parse().expect("an item")
}

fn sale(item: &str, total: u64, limit_per_buyer: Option<u64>) -> Sale {
    let window = Window::new(OPENS_AT, OPENS_AT.plus(Duration::from_secs(60)));
    Sale::new(item_id(item), total, limit_per_buyer, window.expect("a window")).expect("a sale")
}

/// A new reservation of a purchase that `key` names.
fn reservation(item: &str, buyer: &str, key: &str, units: u64) -> Reservation {
    let (item, buyer): (_, BuyerId) = (item_id(item), buyer.parse().expect("a buyer"));
    Reservation {
        request_id: RequestId::derive(&buyer, &item, &key.parse().expect("a key")),
        reservation_id: ReservationId::mint(),
        item,
        epoch: 1,
        buyer,
        quantity: Quantity::new(units).expect("units"),
        reserved_at: OPENS_AT.plus(Duration::from_millis(7)),
    }
}

/// Another taking of stock for the same purchase.
fn another(reservation: &Reservation) -> Reservation {
    Reservation { reservation_id: ReservationId::mint(), ..reservation.clone() }
}

fn expiry(reservation: &Reservation) -> Expiry {
    Expiry {
        request_id: reservation.request_id,
        reservation_id: reservation.reservation_id,
        item: reservation.item.clone(),
        buyer: reservation.buyer.clone(),
        quantity: reservation.quantity,
        epoch: reservation.epoch,
        reason: Reason::COMPENSATED,
    }
}

fn ordered(reservation: &Reservation, state: OrderState) -> Order {
    Order {
        request_id: reservation.request_id,
        reservation_id: reservation.reservation_id,
        item: reservation.item.clone(),
        buyer: reservation.buyer.clone(),
        quantity: reservation.quantity,
        state,
    }
}

fn confirmed(reservation: &Reservation) -> Decision {
    Decision::Ordered(ordered(reservation, OrderState::Confirmed))
}

fn rejected(reservation: &Reservation, reason: Reason) -> Decision {
    Decision::Ordered(ordered(reservation, OrderState::Rejected(reason)))
}
