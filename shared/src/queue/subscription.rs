//! Consumes queues through every loss of the connection, the channel or a queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{MissedTickBehavior, timeout};

use super::acks::AckWindow;
use super::connection::{Broker, Link};
use super::deliveries::Delivery;
use super::error::QueueError;
use super::ghosts::Ghosts;
use super::headers;
use super::names::Queue;
use crate::config::limits::{PREFETCH, TOPOLOGY_DEADLINE};
use crate::retry::Pauses;

/// How often queues and bindings are declared again while messages come over `orders.unrouted`.
const DECLARE_PAUSE: Duration = Duration::from_secs(1);

/// A subscription that ends sooner counts as one more failed attempt: where the broker lets us in and
/// then refuses a queue, we must not come back twenty times a second.
const STEADY: Duration = Duration::from_secs(5);

/// How often queues that bring nothing are asked whether they have something.
const GHOST_CHECK: Duration = Duration::from_secs(5);

/// Keeps a subscription until nobody wants its deliveries any more.
pub(super) struct Subscription {
    pub(super) broker: Broker,
    pub(super) queues: Vec<Queue>,
    pub(super) outgoing: mpsc::Sender<Delivery>,
}

impl Subscription {
    pub(super) async fn run(self) {
        let mut pauses = Pauses::new();
        let mut told = false;
        while !self.outgoing.is_closed() {
            let trouble = match self.broker.connect().await {
                Ok(link) => {
                    tracing::info!(address = %self.broker.address, "connected to RabbitMQ for consuming");
                    let since = Instant::now();
                    let trouble = self.forward(&link).await;
                    if since.elapsed() > STEADY {
                        (pauses, told) = (Pauses::new(), false);
                    }
                    link.close().await;
                    trouble
                }
                Err(error) => Some(error.to_string()),
            };
            let Some(reason) = trouble else { return };
            if !told {
                tracing::warn!(
                    reason,
                    "consuming stopped; subscribing again as soon as RabbitMQ lets us"
                );
                told = true;
            }
            tokio::select! {
                () = tokio::time::sleep(pauses.next_pause()) => {}
                () = self.outgoing.closed() => {}
            }
        }
    }

    /// Hands deliveries on until something breaks; `None` when nobody wants them any more.
    async fn forward(&self, link: &Link) -> Option<String> {
        let mut deliveries = match timeout(TOPOLOGY_DEADLINE, self.subscribe(link)).await {
            Ok(Ok(consumers)) => stream::select_all(consumers),
            Ok(Err(error)) => return Some(error.to_string()),
            Err(_) => return Some("the broker does not answer a subscription".to_owned()),
        };
        let window = Arc::new(Mutex::new(AckWindow::new()));
        let mut declared_at: Option<Instant> = None;
        let mut ghosts = Ghosts::of(&self.queues);
        let mut checks = tokio::time::interval(GHOST_CHECK);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (queue, delivery) = tokio::select! {
                next = deliveries.next() => next?,
                () = self.outgoing.closed() => return None,
                _ = checks.tick() => {
                    match ghosts.check(link, &self.broker.topology.names).await {
                        Some(queue) => return Some(format!("the broker has forgotten that {queue} is consumed")),
                        None => continue,
                    }
                }
            };
            let delivery = match delivery {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => return Some(error.to_string()),
                // The library says no more than this when a queue is deleted.
                None => return Some(format!("the broker ended the consumption of {queue}")),
            };
            if queue == Queue::Unrouted && declared_at.is_none_or(|at| at.elapsed() > DECLARE_PAUSE)
            {
                self.declare_again(link).await;
                declared_at = Some(Instant::now());
            }
            let delivery = Delivery {
                queue,
                headers: headers::texts(delivery.properties.headers()),
                all_headers: headers::all(delivery.properties.headers()),
                message_id: delivery.properties.message_id().as_ref().map(ToString::to_string),
                body: delivery.data,
                tag: delivery.delivery_tag,
                acker: delivery.acker,
                window: Arc::clone(&window),
                _in_hand: ghosts.came(queue),
            };
            self.outgoing.send(delivery).await.ok()?;
        }
    }

    /// Subscribes to every queue on the one channel. Each stream ends with a `None` of its own.
    async fn subscribe(
        &self,
        link: &Link,
    ) -> Result<
        Vec<
            impl StreamExt<Item = (Queue, Option<lapin::Result<lapin::message::Delivery>>)>
            + Unpin
            + use<>,
        >,
        QueueError,
    > {
        let mut consumers = Vec::new();
        for queue in self.queues.iter().copied() {
            let name = self.broker.topology.names.queue(queue);
            let failed = |source: lapin::Error| QueueError::Subscribe {
                queue: name.clone(),
                address: self.broker.address.clone(),
                source: Box::new(source),
            };
            // Before each consumer: it applies to consumers that come after it.
            link.channel.basic_qos(PREFETCH, BasicQosOptions::default()).await.map_err(failed)?;
            let consumer = link
                .channel
                .basic_consume(
                    name.as_str().into(),
                    "".into(),
                    BasicConsumeOptions::default(),
                    FieldTable::default(),
                )
                .await
                .map_err(failed)?;
            let ended = stream::iter([(queue, None)]);
            consumers.push(consumer.map(move |delivery| (queue, Some(delivery))).chain(ended));
        }
        Ok(consumers)
    }

    /// Something had no queue to go to: a queue or a binding is gone. On a channel of its own,
    /// because a refused declaration closes its channel.
    async fn declare_again(&self, link: &Link) {
        tracing::warn!("a message came over orders.unrouted; declaring queues and bindings again");
        let declared = match link.connection.create_channel().await {
            Ok(channel) => self.broker.topology.declare(&channel).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = declared {
            tracing::warn!(error, "cannot declare queues and bindings");
        }
    }
}
