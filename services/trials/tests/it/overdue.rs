//! Holds that nobody finished are finished by the reconciler, as the ledger says.

use std::time::{Duration, Instant};

use shared::domain::{OrderState, Reason, Reservation};
use shared::queue::ready_messages;
use shared::stock::Bucket;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::messages::{Placed, hold, reservation};
use trials::until::until;

/// Short, so that nobody waits for half a minute.
const SOON: Duration = Duration::from_millis(200);

async fn state_of(line: &Line, reservation: &Reservation) -> Option<OrderState> {
    let order = line.ledger.find_order(reservation.request_id).await.expect("the ledger");
    order.map(|order| order.state)
}

/// Messages in the order queues that nobody has taken.
async fn waiting(line: &Line) -> u32 {
    let ready = ready_messages(&line.config.rabbitmq, &line.config.namespace).await;
    ready.expect("the broker").values().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_whose_message_was_never_sent_is_published_and_confirmed() {
    let mut line = Line::new().await;
    line.hurry(SOON);
    let shoes = sale("shoe", 5);
    line.sell(&shoes).await;
    let lost = hold(&line, &shoes.item, "ann", "key-1").await;
    line.start(Service::Consumer);
    line.start(Service::Reconciler);
    until("the order is confirmed", async || {
        (state_of(&line, &lost).await == Some(OrderState::Confirmed)).then_some(())
    })
    .await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, 1);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_ledger_decided_reaches_redis_without_the_broker() {
    let mut line = Line::new().await;
    line.hurry(SOON);
    let shoes = limited("shoe", 4, 2);
    line.sell(&shoes).await;
    let sold = hold(&line, &shoes.item, "ann", "key-1").await;
    let refused = hold(&line, &shoes.item, "bob", "key-1").await;
    let surplus = hold(&line, &shoes.item, "eve", "key-1").await;
    // Bob has had his two elsewhere, so the ledger refuses him a third.
    let elsewhere = ["key-8", "key-9"].map(|key| reservation(&shoes.item, "bob", key, 1));
    line.ledger.commit(&elsewhere).await.expect("decided");
    // Eve's request was decided under another reservation.
    let other = reservation(&shoes.item, "eve", "key-1", 1);
    line.ledger.commit(&[sold.clone(), refused.clone(), other]).await.expect("decided");
    assert_eq!(state_of(&line, &refused).await, Some(OrderState::Rejected(Reason::LIMIT_REACHED)));

    line.start(Service::Reconciler);
    line.until_settled(&shoes.item).await;
    // Ann's unit is sold; Bob's and Eve's went back. Sold elsewhere: three.
    let redis = line.snapshot(&shoes.item).await;
    assert_eq!((redis.available, redis.confirmed_units), (3, 1));
    let bucket = Bucket { item: shoes.item.clone(), number: 0 };
    let found = line
        .stock
        .find_hold(&bucket.item, &surplus.buyer, surplus.request_id)
        .await
        .expect("an answer");
    let hold = found.hold.expect("a record");
    assert_eq!(hold.standing.decided(), Some(OrderState::Confirmed), "the request is confirmed");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_hold_is_neither_expired_nor_published_again_while_its_message_waits() {
    const BUYERS: usize = 200;
    let mut line = Line::new().await;
    line.hurry(SOON);
    let shoes = sale("shoe", BUYERS as u64);
    line.sell(&shoes).await;
    let address = line.ingress().await;
    at_once((0..BUYERS).map(|number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        assert_eq!(buyer.buy_patiently("shoe", "key-1", 1).await.status, 202);
    }))
    .await;
    let before = waiting(&line).await;
    assert!(before > 0, "the messages wait for consumers");

    // Looks come after 0.2, 0.4 and 0.8 s, in rounds of a second: long enough for three of them.
    line.start(Service::Reconciler);
    line.start(Service::Reconciler);
    let started = Instant::now();
    until("three looks have gone by", async || {
        (started.elapsed() > Duration::from_secs(4)).then_some(())
    })
    .await;
    assert_eq!(waiting(&line).await, before, "no copies");
    line.start(Service::Consumer);
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, BUYERS as u64, "none is expired for being late");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_reconcilers_never_publish_the_same_hold_twice() {
    const HOLDS: usize = 150;
    let mut line = Line::new().await;
    // Once only: the second look comes much later.
    line.hurry(Duration::from_secs(3));
    let shoes = sale("shoe", HOLDS as u64);
    line.sell(&shoes).await;
    for number in 0..HOLDS {
        hold(&line, &shoes.item, &format!("buyer-{number}"), "key-1").await;
    }
    line.start(Service::Reconciler);
    line.start(Service::Reconciler);
    let mut published: Vec<_> = Placed::of(&line).all(HOLDS).await;
    published.sort_by_key(|reservation| reservation.request_id);
    published.dedup_by_key(|reservation| reservation.request_id);
    assert_eq!(published.len(), HOLDS, "each once");
    line.start(Service::Consumer);
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, HOLDS as u64);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_reservation_keeps_its_hold() {
    let mut line = Line::new().await;
    line.hurry(SOON);
    let shoes = sale("shoe", 5);
    line.sell(&shoes).await;
    line.ledger.meddle("ALTER TABLE orders ADD CHECK (buyer_id <> 'bad')").await.expect("meddled");
    let bad = hold(&line, &shoes.item, "bad", "key-1").await;
    let good = hold(&line, &shoes.item, "good", "key-1").await;
    line.start(Service::Consumer);
    line.start(Service::Reconciler);
    until("the good one is confirmed and the bad one is parked", async || {
        let parked = line.ledger.parked(&[bad.reservation_id]).await.expect("the ledger");
        let confirmed = state_of(&line, &good).await == Some(OrderState::Confirmed);
        (confirmed && parked.contains(&bad.reservation_id)).then_some(())
    })
    .await;
    let started = Instant::now();
    until("more looks have gone by", async || {
        (started.elapsed() > Duration::from_secs(3)).then_some(())
    })
    .await;
    let redis = line.snapshot(&shoes.item).await;
    assert_eq!((redis.available, redis.held), (3, 1), "its unit is kept for it");
    assert_eq!(state_of(&line, &bad).await, None, "nobody decided it");
    line.stop_all().await;
}
