//! One connection with one channel on which the topology is declared.

use std::str::FromStr;

use lapin::options::ConfirmSelectOptions;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::time::timeout;

use super::error::QueueError;
use super::topology::Topology;
use crate::config;
use crate::config::limits::{AMQP_HEARTBEAT_SECONDS, CONNECT_DEADLINE, TOPOLOGY_DEADLINE};
use crate::domain::Namespace;

/// How to reach the broker, and what to find there.
#[derive(Clone)]
pub(super) struct Broker {
    uri: AMQPUri,
    /// What operators see in the broker's list of connections.
    name: String,
    pub(super) address: String,
    pub(super) topology: Topology,
}

/// A connection and its channel; both are given up together.
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) channel: Channel,
}

impl Broker {
    pub(super) fn new(
        config: &config::RabbitMq,
        namespace: &Namespace,
        name: &str,
    ) -> Result<Self, QueueError> {
        let mut uri = AMQPUri::from_str(config.url.expose()).map_err(QueueError::InvalidUrl)?;
        uri.query.heartbeat = Some(AMQP_HEARTBEAT_SECONDS);
        Ok(Self {
            uri,
            name: format!("lastunit {name} ({namespace})"),
            address: config.url.address(),
            topology: Topology::new(config, namespace),
        })
    }

    /// Connects once, and declares the topology.
    pub(super) async fn connect(&self) -> Result<Link, QueueError> {
        let attempt = timeout(CONNECT_DEADLINE, self.open());
        let link = match attempt.await {
            Ok(opened) => opened.map_err(|error| self.unreachable(error))?,
            Err(_) => return Err(self.unreachable("it does not answer")),
        };
        match timeout(TOPOLOGY_DEADLINE, self.topology.declare(&link.channel)).await {
            Ok(declared) => declared.map(|()| link),
            Err(_) => Err(self.unreachable("it does not declare queues")),
        }
    }

    async fn open(&self) -> Result<Link, lapin::Error> {
        let properties =
            ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let connection = Connection::connect_uri(self.uri.clone(), properties).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Link { connection, channel })
    }

    fn unreachable(&self, reason: impl ToString) -> QueueError {
        QueueError::Unreachable { address: self.address.clone(), reason: reason.to_string() }
    }
}

impl Link {
    /// Closes politely, so that the broker does not log a lost client. Bounded; a broker that does
    /// not answer is left.
    pub(super) async fn close(self) {
        let Self { connection, channel } = self;
        let _ = timeout(CONNECT_DEADLINE, async {
            let _ = channel.close(200, "stopping".into()).await;
            let _ = connection.close(200, "stopping".into()).await;
        })
        .await;
    }
}
