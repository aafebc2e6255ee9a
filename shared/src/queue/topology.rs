//! Declares exchanges, queues and bindings. Declaring again what exists changes nothing, so every
//! connection does it.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};

use super::error::QueueError;
use super::names::{Names, Queue};
use crate::config;
use crate::config::limits::DELIVERY_LIMIT;
use crate::domain::Namespace;

/// Everything that a deployment has at its broker.
#[derive(Debug, Clone)]
pub(super) struct Topology {
    pub(super) names: Names,
    address: String,
    partitions: u16,
}

impl Topology {
    pub(super) fn new(config: &config::RabbitMq, namespace: &Namespace) -> Self {
        Self {
            names: Names::new(namespace),
            address: config.url.address(),
            partitions: config.partitions,
        }
    }

    /// Declares everything on this channel. An error closes the channel.
    pub(super) async fn declare(&self, channel: &Channel) -> Result<(), QueueError> {
        let names = &self.names;
        let (reservations, unrouted) = (names.reservations(), names.unrouted());
        let (compensations, dead) = (names.compensations(), names.dead());

        self.exchange(channel, &dead, ExchangeKind::Direct, FieldTable::default()).await?;
        self.queue(channel, Queue::Dead, FieldTable::default()).await?;
        self.bind(channel, Queue::Dead, &dead, "").await?;

        self.exchange(channel, &unrouted, ExchangeKind::Fanout, FieldTable::default()).await?;
        self.queue(channel, Queue::Unrouted, self.with_dead_letters()).await?;
        self.bind(channel, Queue::Unrouted, &unrouted, "").await?;

        let alternate = table([("alternate-exchange", text(&unrouted))]);
        self.exchange(channel, &reservations, ExchangeKind::Direct, alternate).await?;
        for partition in 0..self.partitions {
            let queue = Queue::Orders(partition);
            self.queue(channel, queue, self.with_dead_letters()).await?;
            self.bind(channel, queue, &reservations, &partition.to_string()).await?;
        }

        self.exchange(channel, &compensations, ExchangeKind::Direct, FieldTable::default()).await?;
        self.queue(channel, Queue::Compensations, self.with_dead_letters()).await?;
        self.bind(channel, Queue::Compensations, &compensations, "").await
    }

    /// Nothing of ours is rejected into a queue's dead-letter exchange; should a broker's own rule
    /// ever do it, the message must not vanish.
    fn with_dead_letters(&self) -> FieldTable {
        table([
            ("x-dead-letter-exchange", text(&self.names.dead())),
            ("x-dead-letter-routing-key", text("")),
            ("x-delivery-limit", AMQPValue::LongLongInt(DELIVERY_LIMIT)),
        ])
    }

    async fn exchange(
        &self,
        channel: &Channel,
        name: &str,
        kind: ExchangeKind,
        arguments: FieldTable,
    ) -> Result<(), QueueError> {
        let options = ExchangeDeclareOptions { durable: true, ..Default::default() };
        let declared = channel.exchange_declare(name.into(), kind, options, arguments).await;
        declared.map_err(|source| self.refused(format!("the exchange {name}"), source))
    }

    async fn queue(
        &self,
        channel: &Channel,
        queue: Queue,
        mut arguments: FieldTable,
    ) -> Result<(), QueueError> {
        let name = self.names.queue(queue);
        arguments.insert("x-queue-type".into(), text("quorum"));
        let options = QueueDeclareOptions { durable: true, ..Default::default() };
        let declared = channel.queue_declare(name.as_str().into(), options, arguments).await;
        declared.map(drop).map_err(|source| self.refused(format!("the queue {name}"), source))
    }

    async fn bind(
        &self,
        channel: &Channel,
        queue: Queue,
        exchange: &str,
        key: &str,
    ) -> Result<(), QueueError> {
        let name = self.names.queue(queue);
        let bound = channel
            .queue_bind(
                name.as_str().into(),
                exchange.into(),
                key.into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await;
        bound.map_err(|source| self.refused(format!("the binding {exchange} → {name}"), source))
    }

    fn refused(&self, what: String, source: lapin::Error) -> QueueError {
        QueueError::Declare { what, address: self.address.clone(), source: Box::new(source) }
    }
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

fn table<const N: usize>(entries: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert(name.into(), value);
    }
    table
}
