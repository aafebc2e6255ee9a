//! What is published past ingress, and what arrives in the dead letters.

use shared::contract::{
    Compensation, ReservationsPlaced, decode_reservations, encode_compensation, encode_reservations,
};
use shared::domain::{
    BuyerId, EnvironmentId, ItemId, Quantity, RequestId, Reservation, ReservationId, UnixMillis,
    partition,
};
use shared::queue::{Deliveries, Outgoing, PublishOutcome, Publisher, Queue, Route};
use shared::stock::{Bucket, ReserveReply, ReserveRequest, Reserved};
use tokio::time::timeout;
use uuid::Uuid;

use crate::line::Line;
use crate::until::{PATIENCE, until};

/// Somebody at the broker: publishes to its queues, and takes the dead letters out.
pub struct Post {
    publisher: Publisher,
    dead: Deliveries,
    partitions: u16,
    environment: EnvironmentId,
}

impl Post {
    pub async fn of(line: &Line) -> Self {
        let (rabbitmq, namespace) = (&line.config.rabbitmq, &line.config.namespace);
        let publisher = Publisher::connect(rabbitmq, namespace, "trial").expect("a publisher");
        let dead = Deliveries::subscribe(rabbitmq, namespace, "trial", vec![Queue::Dead]);
        let environment = line.ledger.environment().await.expect("an environment");
        let dead = dead.expect("a subscription");
        Self { publisher, dead, partitions: rabbitmq.partitions, environment }
    }

    /// Publishes until the broker has it.
    pub async fn publish(&self, route: Route, body: Vec<u8>) {
        until("the broker has the message", async || {
            let message = Outgoing { route, headers: Vec::new(), body: body.clone() };
            (self.publisher.publish(message).await == PublishOutcome::Confirmed).then_some(())
        })
        .await;
    }

    /// Publishes reservations of one item, as ingress does.
    pub async fn place(&self, reservations: &[Reservation]) {
        let item = &reservations.first().expect("a reservation").item;
        let route = self.route_of(item);
        self.publish(route, self.placed_in(self.environment, reservations)).await;
    }

    /// The body of a message from an environment.
    pub fn placed_in(&self, environment: EnvironmentId, reservations: &[Reservation]) -> Vec<u8> {
        let reservations = reservations.to_vec();
        encode_reservations(&ReservationsPlaced { environment, reservations })
    }

    pub async fn compensate(&self, reservation: &Reservation) {
        let body = self.compensation_of(reservation);
        self.publish(Route::Compensations, body).await;
    }

    pub fn compensation_of(&self, reservation: &Reservation) -> Vec<u8> {
        let reason = "trial".parse().expect("a reason");
        encode_compensation(&Compensation::of(reservation, self.environment, reason))
    }

    pub fn route_of(&self, item: &ItemId) -> Route {
        Route::Orders { partition: partition(item, self.partitions) }
    }

    /// Waits until everything that is in the queues now has been through a consumer and then
    /// through a compensator, and returns the dead letters that came of it, in their order.
    ///
    /// It sends a message behind them that nobody can read. With one consumer, whatever was in
    /// front is done when that message comes out at the other end.
    pub async fn flush(&mut self) -> Vec<Vec<u8>> {
        let mut letters = Vec::new();
        for partition in 0..self.partitions {
            self.send_through(Route::Orders { partition }, &mut letters).await;
        }
        self.send_through(Route::Compensations, &mut letters).await;
        letters
    }

    async fn send_through(&mut self, route: Route, letters: &mut Vec<Vec<u8>>) {
        let mark = format!("mark {}", Uuid::new_v4()).into_bytes();
        self.publish(route, mark.clone()).await;
        while !letters.contains(&mark) {
            letters.extend(self.letters().await);
        }
        letters.retain(|letter| *letter != mark);
    }

    async fn letters(&mut self) -> Vec<Vec<u8>> {
        let batch = timeout(PATIENCE, self.dead.next_batch(64)).await.expect("a dead letter");
        let bodies = batch.iter().map(|delivery| delivery.body.clone()).collect();
        self.dead.finish(batch).await;
        bodies
    }
}

/// Somebody at the order queues in a consumer's place, who only reads.
pub struct Placed(Deliveries);

impl Placed {
    pub fn of(line: &Line) -> Self {
        let (rabbitmq, namespace) = (&line.config.rabbitmq, &line.config.namespace);
        let queues = (0..rabbitmq.partitions).map(Queue::Orders).collect();
        let orders = Deliveries::subscribe(rabbitmq, namespace, "trial", queues);
        Self(orders.expect("a subscription"))
    }

    /// Takes what is there and finishes none of it: it all goes back when this ends.
    pub async fn all(mut self, count: usize) -> Vec<Reservation> {
        let mut found = Vec::new();
        while found.len() < count {
            let batch = timeout(PATIENCE, self.0.next_batch(64)).await.expect("more messages");
            for delivery in batch {
                found.extend(
                    decode_reservations(&delivery.body).expect("reservations").reservations,
                );
            }
        }
        found
    }

    /// The reservations of the next message.
    pub async fn next(&mut self) -> Vec<Reservation> {
        let batch = timeout(PATIENCE, self.0.next_batch(1)).await.expect("a message");
        let body = &batch.first().expect("a message").body;
        let placed = decode_reservations(body).expect("a message that can be read");
        self.0.finish(batch).await;
        placed.reservations
    }
}

/// A reservation that nobody made.
pub fn reservation(item: &ItemId, buyer: &str, key: &str, units: u64) -> Reservation {
    let buyer: BuyerId = buyer.parse().expect("a buyer");
    Reservation {
        request_id: request_id(item, buyer.as_str(), key),
        reservation_id: ReservationId::mint(),
        item: item.clone(),
        epoch: 1,
        buyer,
        quantity: Quantity::new(units).expect("a quantity"),
        reserved_at: UnixMillis::from(std::time::SystemTime::now()),
    }
}

/// The name that a purchase has for ever.
pub fn request_id(item: &ItemId, buyer: &str, key: &str) -> RequestId {
    let buyer = buyer.parse().expect("a buyer");
    RequestId::derive(&buyer, item, &key.parse().expect("a key"))
}

/// The reservation of a purchase, as Redis has it.
pub async fn reservation_of(line: &Line, item: &ItemId, buyer: &str, key: &str) -> Reservation {
    let mut reservation = reservation(item, buyer, key, 1);
    let lookup = line.stock.find_hold(item, &reservation.buyer, reservation.request_id).await;
    let lookup = lookup.expect("Redis");
    let hold = lookup.hold.expect("a hold");
    reservation.reservation_id = hold.reservation_id;
    reservation.quantity = hold.quantity;
    reservation
}

/// Takes stock as ingress does, and then nothing more, as if ingress had died.
pub async fn hold(line: &Line, item: &ItemId, buyer: &str, key: &str) -> Reservation {
    let made = reservation(item, buyer, key, 1);
    let request = ReserveRequest {
        request_id: made.request_id,
        reservation_id: made.reservation_id,
        buyer: made.buyer.clone(),
        quantity: made.quantity,
    };
    let reserved = until("stock is taken", async || {
        let layout = line.stock.layout(item);
        let home = Bucket::home(item, &request.buyer, layout.buckets);
        match line.stock.reserve(&home, layout, std::slice::from_ref(&request)).await.ok()? {
            Reserved::Moved(layout) => {
                line.stock.learn(item, layout);
                None
            }
            reserved => Some(reserved),
        }
    })
    .await;
    match reserved {
        Reserved::Answered(mut replies) => match replies.remove(0) {
            ReserveReply::Held(reservation) => reservation,
            other => panic!("stock is held: {other:?}"),
        },
        not_now => panic!("the item sells: {not_now:?}"),
    }
}
