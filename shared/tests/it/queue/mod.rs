//! The queue room on a real RabbitMQ.

mod broker;
mod consume;
mod publish;

use std::time::{Duration, Instant};

use shared::config;
use shared::devstack::World;
use shared::domain::Namespace;
use shared::queue::{Deliveries, Delivery, Outgoing, PublishOutcome, Publisher, Queue, Route};
use tokio::time::timeout;
use uuid::Uuid;

use crate::eventually::eventually;

/// How long a message, an answer, or a new connection to a broker that runs may take.
const BOUND: Duration = Duration::from_secs(10);

/// How long it is watched that nothing comes. Longer than a message takes, by far.
const SILENCE: Duration = Duration::from_millis(300);

const ORDERS: Route = Route::Orders { partition: 1 };
const ORDERS_QUEUE: Queue = Queue::Orders(1);

/// The topology of one namespace.
struct Line {
    config: config::RabbitMq,
    namespace: Namespace,
}

impl Line {
    async fn new() -> Self {
        let World { config } = World::new().await;
        Self { config: config.rabbitmq, namespace: config.namespace }
    }

    /// On a broker of the test's own, under a namespace of its own.
    fn at(url: &str) -> Self {
        let config = config::RabbitMq { url: url.parse().expect("a URL"), partitions: 2 };
        let name = format!("t-{}", &Uuid::new_v4().simple().to_string()[..12]);
        Self { config, namespace: name.parse().expect("a namespace") }
    }

    fn address(&self) -> String {
        self.config.url.address()
    }

    fn queue(&self, queue: Queue) -> String {
        format!("{}.{queue}", self.namespace)
    }

    /// Connected.
    async fn publisher(&self) -> Publisher {
        let publisher = Publisher::connect(&self.config, &self.namespace, "test").expect("a URL");
        ready(&publisher).await;
        publisher
    }

    fn consumer(&self, queues: &[Queue]) -> Deliveries {
        let queues = queues.to_vec();
        Deliveries::subscribe(&self.config, &self.namespace, "test", queues).expect("a URL")
    }
}

async fn ready(publisher: &Publisher) {
    eventually("the publisher is ready", BOUND, || async {
        publisher.trouble().is_none().then_some(())
    })
    .await;
}

fn message(route: Route, body: &str) -> Outgoing {
    Outgoing { route, headers: Vec::new(), body: body.as_bytes().to_vec() }
}

async fn publish(publisher: &Publisher, route: Route, body: &str) {
    let outcome = publisher.publish(message(route, body)).await;
    assert_eq!(outcome, PublishOutcome::Confirmed, "{body}");
}

/// While the connection is replaced, a publish is refused; what was refused may be sent again.
async fn publish_again(publisher: &Publisher, route: Route, body: &str) {
    eventually("a message is taken again", BOUND, async || {
        match publisher.publish(message(route, body)).await {
            PublishOutcome::Confirmed => Some(()),
            PublishOutcome::NotSent(_) => None,
            other => panic!("{body}: {other:?}"),
        }
    })
    .await;
}

/// The next `count` deliveries, in the order in which they come.
async fn take(deliveries: &mut Deliveries, count: usize) -> Vec<Delivery> {
    let mut taken = Vec::new();
    let deadline = Instant::now() + BOUND;
    while taken.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        let batch = timeout(left, deliveries.next_batch(count - taken.len())).await;
        taken.extend(batch.unwrap_or_else(|_| panic!("only {} of {count} came", taken.len())));
    }
    taken
}

async fn nothing_comes(deliveries: &mut Deliveries) {
    if let Ok(batch) = timeout(SILENCE, deliveries.next_batch(1)).await {
        panic!("{:?} came", bodies(&batch));
    }
}

fn bodies(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect()
}

fn sorted(deliveries: &[Delivery]) -> Vec<String> {
    let mut bodies = bodies(deliveries);
    bodies.sort();
    bodies
}
