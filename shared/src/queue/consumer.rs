//! Consumes queues through every loss of the connection, the channel or a queue.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::acks::AckWindow;
use super::connection::{Broker, Link};
use super::error::QueueError;
use super::names::Queue;
use crate::config;
use crate::config::limits::{PREFETCH, TOPOLOGY_DEADLINE};
use crate::domain::Namespace;
use crate::retry::Pauses;

/// How long a message that this process must leave alone is kept before others get it.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// How often queues and bindings are declared again while messages come over `orders.unrouted`.
const DECLARE_PAUSE: Duration = Duration::from_secs(1);

/// A message that came. It must be [finished](Deliveries::finish) once everything that follows
/// from it is done; whatever is not comes again.
pub struct Delivery {
    pub queue: Queue,
    pub body: Vec<u8>,
    tag: u64,
    acker: Acker,
    window: Arc<Mutex<AckWindow<Acker>>>,
}

/// Deliveries of some queues, one after the other. Dropping it ends the consumption.
pub struct Deliveries {
    incoming: mpsc::Receiver<Delivery>,
}

impl Deliveries {
    /// Begins to consume, and returns at once.
    pub fn subscribe(
        config: &config::RabbitMq,
        namespace: &Namespace,
        name: &str,
        queues: Vec<Queue>,
    ) -> Result<Self, QueueError> {
        let broker = Broker::new(config, namespace, name)?;
        let (outgoing, incoming) = mpsc::channel(usize::from(PREFETCH));
        tokio::spawn(Supervisor { broker, queues, outgoing }.run());
        Ok(Self { incoming })
    }

    /// Waits for a delivery, then takes what else is there, at most `most`. Never empty; can be
    /// dropped while waiting without losing anything.
    ///
    /// # Panics
    ///
    /// When the supervisor has panicked: a service that silently consumes nothing would be worse.
    pub async fn next_batch(&mut self, most: usize) -> Vec<Delivery> {
        let mut batch = Vec::new();
        let taken = self.incoming.recv_many(&mut batch, most).await;
        assert!(taken > 0, "the supervisor of a subscription ends only after its reader");
        batch
    }

    /// Acknowledges deliveries after which nothing is left to do. An ack that does not arrive only
    /// means that the message comes again.
    pub async fn finish(&self, deliveries: Vec<Delivery>) {
        let mut newest: Vec<Acker> = Vec::new();
        for Delivery { tag, acker, window, .. } in deliveries {
            // No code that can panic runs under this lock.
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            newest.extend(window.finish(tag, acker));
        }
        for acker in newest {
            if let Err(error) = acker.ack(BasicAckOptions { multiple: true }).await {
                tracing::debug!(%error, "an ack did not arrive; its messages will come again");
            }
        }
    }

    /// Leaves a message to consumers of a later release: it goes back to the queue, after a pause.
    pub fn leave(&self, delivery: Delivery) {
        tokio::spawn(async move {
            tokio::time::sleep(LEFT_ALONE).await;
            let options = BasicNackOptions { requeue: true, multiple: false };
            let _ = delivery.acker.nack(options).await;
            let Delivery { tag, window, .. } = delivery;
            let newest = window.lock().unwrap_or_else(PoisonError::into_inner).leave(tag);
            if let Some(acker) = newest {
                let _ = acker.ack(BasicAckOptions { multiple: true }).await;
            }
        });
    }
}

struct Supervisor {
    broker: Broker,
    queues: Vec<Queue>,
    outgoing: mpsc::Sender<Delivery>,
}

impl Supervisor {
    async fn run(self) {
        let mut pauses = Pauses::new();
        let mut told = false;
        while !self.outgoing.is_closed() {
            let trouble = match self.broker.connect().await {
                Ok(link) => {
                    tracing::info!(address = %self.broker.address, "connected to RabbitMQ for consuming");
                    (pauses, told) = (Pauses::new(), false);
                    let trouble = self.forward(&link).await;
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
        loop {
            let (queue, delivery) = tokio::select! {
                next = deliveries.next() => next?,
                () = self.outgoing.closed() => return None,
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
                body: delivery.data,
                tag: delivery.delivery_tag,
                acker: delivery.acker,
                window: Arc::clone(&window),
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

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("queue", &self.queue)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
