//! Publishing: what a confirm is worth, and that there is an answer in any case.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use shared::contract::DeadLetter;
use shared::queue::{Outgoing, PublishOutcome, Publisher, Queue, Route};
use tokio_util::sync::CancellationToken;

use super::{BOUND, Line, ORDERS, ORDERS_QUEUE, bodies, message, publish, sorted, take};

#[tokio::test]
async fn each_route_leads_to_its_queue_and_no_other() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    let routes = [
        (Route::Orders { partition: 0 }, Queue::Orders(0)),
        (Route::Orders { partition: 1 }, Queue::Orders(1)),
        (Route::Compensations, Queue::Compensations),
        (Route::Dead, Queue::Dead),
        // A partition beyond the configured ones: another process may have more.
        (Route::Orders { partition: 63 }, Queue::Unrouted),
    ];
    for (route, queue) in routes {
        publish(&publisher, route, &queue.to_string()).await;
    }
    for (_, queue) in routes {
        let mut deliveries = line.consumer(&[queue]);
        let [delivery] = take(&mut deliveries, 1).await.try_into().expect("one");
        assert_eq!(delivery.queue, queue);
        assert_eq!(delivery.body, queue.to_string().as_bytes());
        super::nothing_comes(&mut deliveries).await;
    }
}

#[tokio::test]
async fn a_crowd_is_confirmed_in_windows_and_nothing_is_lost_or_doubled() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    // Several windows, and fewer than may wait.
    let names: Vec<String> = (0..500).map(|n| format!("{n:03}")).collect();
    let outcomes = names.iter().map(|name| publisher.publish(message(ORDERS, name)));
    let outcomes = join_all(outcomes).await;
    assert!(outcomes.iter().all(|outcome| *outcome == PublishOutcome::Confirmed));
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let mut came = Vec::new();
    while came.len() < names.len() {
        let batch = take(&mut deliveries, 50).await;
        came.extend(bodies(&batch));
        deliveries.finish(batch).await;
    }
    assert_eq!(came, names, "in the order in which they were handed over");
    super::nothing_comes(&mut deliveries).await;
}

#[tokio::test]
async fn more_than_may_wait_is_refused_and_never_sent() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    let names: Vec<String> = (0..3_000).map(|n| format!("{n:04}")).collect();
    let outcomes = names.iter().map(|name| publisher.publish(message(ORDERS, name)));
    let outcomes = join_all(outcomes).await;
    let mut confirmed = Vec::new();
    for (name, outcome) in names.iter().zip(outcomes) {
        match outcome {
            PublishOutcome::Confirmed => confirmed.push(name.clone()),
            PublishOutcome::NotSent(reason) => assert!(reason.contains("too many"), "{reason}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(confirmed.len() < names.len(), "there is a bound");
    assert_eq!(publisher.trouble(), None, "and it was for a moment only");
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let mut came = Vec::new();
    while came.len() < confirmed.len() {
        let batch = take(&mut deliveries, 1).await;
        came.extend(bodies(&batch));
        deliveries.finish(batch).await;
    }
    assert_eq!(came, confirmed);
    super::nothing_comes(&mut deliveries).await;
}

#[tokio::test]
async fn a_dead_letter_keeps_its_body_byte_by_byte() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    let letter = DeadLetter {
        reason: "undecodable",
        error: "not a message: \u{1f4e6}".repeat(100),
        source: "orders.0".to_owned(),
        body: vec![0xff, 0x00, b'{'],
    };
    let outcome = publisher.publish(Outgoing::dead_letter(letter.clone())).await;
    assert_eq!(outcome, PublishOutcome::Confirmed);
    let [delivery] = take(&mut line.consumer(&[Queue::Dead]), 1).await.try_into().expect("one");
    assert_eq!(delivery.body, letter.body);
}

#[tokio::test]
async fn empty_and_large_bodies_travel_too() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    let large = "x".repeat(1 << 20);
    for body in ["", &large] {
        publish(&publisher, ORDERS, body).await;
    }
    let came = take(&mut line.consumer(&[ORDERS_QUEUE]), 2).await;
    assert_eq!(sorted(&came), ["", &large]);
}

#[tokio::test]
async fn a_caller_who_stops_waiting_costs_the_others_nothing() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    for round in 0..20 {
        let impatient = publisher.publish(message(ORDERS, "impatient"));
        let _ = tokio::time::timeout(Duration::from_micros(round * 50), impatient).await;
        publish(&publisher, ORDERS, "patient").await;
    }
}

#[tokio::test]
async fn without_a_broker_every_publish_is_refused_at_once_by_its_address() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let line = Line::at(&format!("amqp://shop:hush@{address}/%2f"));
    let publisher =
        Publisher::connect(&line.config, &line.namespace, "test").expect("it only begins");
    let trouble = publisher.trouble().expect("not connected");
    assert!(trouble.contains(&address.to_string()), "{trouble}");
    let told = || async {
        let trouble = publisher.trouble().expect("never connected");
        trouble.starts_with(&format!("cannot reach RabbitMQ at {address}: ")).then_some(trouble)
    };
    let trouble = crate::eventually::eventually("it was tried", BOUND, told).await;
    assert!(!trouble.contains("hush"), "{trouble}");
    let since = Instant::now();
    for _ in 0..100 {
        let outcome = publisher.publish(message(ORDERS, "x")).await;
        assert!(matches!(outcome, PublishOutcome::NotSent(_)), "{outcome:?}");
    }
    assert!(since.elapsed() < Duration::from_millis(500), "{:?}", since.elapsed());
}

#[tokio::test]
async fn publishing_all_can_be_given_up() {
    let line = Line::at("amqp://127.0.0.1:1/%2f");
    let publisher = Publisher::connect(&line.config, &line.namespace, "test").expect("a URL");
    let give_up = CancellationToken::new();
    let messages = vec![message(ORDERS, "x")];
    let publishing = publisher.publish_all(messages, &give_up);
    let (done, ()) = tokio::join!(publishing, async { give_up.cancel() });
    assert_eq!(done, None);
}

#[tokio::test]
async fn publishing_all_ends_when_the_broker_has_every_one() {
    let line = Line::new().await;
    let publisher = Publisher::connect(&line.config, &line.namespace, "test").expect("a URL");
    let names: Vec<String> = (0..150).map(|n| format!("{n:03}")).collect();
    let messages = names.iter().map(|name| message(ORDERS, name)).collect();
    // Begun before it is connected.
    let done = publisher.publish_all(messages, &CancellationToken::new()).await;
    assert_eq!(done, Some(()));
    let mut came = take(&mut line.consumer(&[ORDERS_QUEUE]), names.len()).await;
    came.sort_by(|one, other| one.body.cmp(&other.body));
    assert_eq!(bodies(&came), names);
}
