//! Consumes queues through every loss of the connection, the channel or a queue.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use tokio::sync::{Mutex, mpsc};

use super::acks::AckWindow;
use super::connection::{Broker, Link};
use super::error::QueueError;
use super::names::Queue;
use crate::config;
use crate::config::limits::PREFETCH;
use crate::domain::Namespace;
use crate::retry::Pauses;

/// How long a message that this process must leave alone is kept before others get it.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// How often queues and bindings are declared again while messages come over `orders.unrouted`.
const DECLARE_PAUSE: Duration = Duration::from_secs(1);

/// A subscription that ends sooner counts as one more failed attempt: where the broker lets us in and
/// then refuses a queue, we must not come back twenty times a second.
const STEADY: Duration = Duration::from_secs(5);

/// A message that came. It must be [finished](Deliveries::finish) once everything that follows
/// from it is done; whatever is not comes again.
pub struct Delivery {
    pub queue: Queue,
    pub body: Vec<u8>,
    /// Texts among the headers, by name.
    pub headers: HashMap<String, String>,
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
        let mut deliveries = deliveries.into_iter().peekable();
        while let Some(Delivery { tag, acker, window, .. }) = deliveries.next() {
            let mut acks = window.lock().await;
            let mut newest = acks.finish(tag, acker);
            let of_this_channel = |next: &Delivery| Arc::ptr_eq(&next.window, &window);
            while let Some(Delivery { tag, acker, .. }) = deliveries.next_if(of_this_channel) {
                newest = acks.finish(tag, acker).or(newest);
            }
            acknowledge(newest).await;
        }
    }

    /// Leaves a message to consumers of a later release: it goes back to the queue, after a pause.
    pub fn leave(&self, delivery: Delivery) {
        tokio::spawn(async move {
            tokio::time::sleep(LEFT_ALONE).await;
            let Delivery { tag, acker, window, .. } = delivery;
            let mut acks = window.lock().await;
            let options = BasicNackOptions { requeue: true, multiple: false };
            if let Err(error) = acker.nack(options).await {
                tracing::debug!(%error, "a message that is left will come again without it");
            }
            acknowledge(acks.put_back(tag)).await;
        });
    }
}

/// Acknowledges a delivery and all below it. Called with its channel's window locked: an ack that
/// is overtaken by a higher one names a delivery that the broker no longer waits for, and that
/// closes the channel.
async fn acknowledge(newest: Option<Acker>) {
    let Some(acker) = newest else { return };
    if let Err(error) = acker.ack(BasicAckOptions { multiple: true }).await {
        tracing::debug!(%error, "an ack did not arrive; its messages will come again");
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
        let mut deliveries = match self.subscribe(link).await {
            Ok(consumers) => stream::select_all(consumers),
            Err(error) => return Some(error.to_string()),
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
                headers: texts(delivery.properties.headers()),
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

fn texts(headers: &Option<FieldTable>) -> HashMap<String, String> {
    let entries = headers.iter().flat_map(FieldTable::inner);
    let text = |(name, value): (&ShortString, &AMQPValue)| match value {
        AMQPValue::LongString(text) => Some((name.to_string(), text.to_string())),
        _ => None,
    };
    entries.filter_map(text).collect()
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("queue", &self.queue)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
