//! Deliveries of queues, and how they are finished.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tokio::sync::{Mutex, mpsc};

use super::acks::AckWindow;
use super::connection::Broker;
use super::error::QueueError;
use super::ghosts::InHand;
use super::names::Queue;
use super::subscription::Subscription;
use crate::config;
use crate::config::limits::PREFETCH;
use crate::domain::Namespace;

/// How long a message that this process must leave alone is kept before others get it.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// A message that came. It must be [finished](finish) once everything that follows
/// from it is done; whatever is not comes again.
pub struct Delivery {
    pub queue: Queue,
    pub body: Vec<u8>,
    /// Texts among the headers, by name.
    pub headers: HashMap<String, String>,
    /// All headers, the broker's own included, for people.
    pub all_headers: serde_json::Value,
    /// What its publisher called it; a redelivery has the same.
    pub message_id: Option<String>,
    pub(super) tag: u64,
    pub(super) acker: Acker,
    pub(super) window: Arc<Mutex<AckWindow<Acker>>>,
    /// Goes when the delivery is finished.
    pub(super) _in_hand: InHand,
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
        tokio::spawn(Subscription { broker, queues, outgoing }.run());
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

    /// [Finishes](finish) deliveries, for whoever also takes them.
    pub async fn finish(&self, deliveries: Vec<Delivery>) {
        finish(deliveries).await;
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

/// Acknowledges deliveries after which nothing is left to do, in whatever order they come. An ack that
/// does not arrive only means that the message comes again.
pub async fn finish(deliveries: Vec<Delivery>) {
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

/// Acknowledges a delivery and all below it. Called with its channel's window locked: an ack that
/// is overtaken by a higher one names a delivery that the broker no longer waits for, and that
/// closes the channel.
async fn acknowledge(newest: Option<Acker>) {
    let Some(acker) = newest else { return };
    if let Err(error) = acker.ack(BasicAckOptions { multiple: true }).await {
        tracing::debug!(%error, "an ack did not arrive; its messages will come again");
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
