//! Declares the topology once, to find out at start whether the broker accepts it.

use super::connection::Broker;
use super::error::QueueError;
use crate::config;
use crate::domain::Namespace;

/// Declares everything that a deployment has at its broker, on a connection of its own. Publishers
/// and consumers do the same whenever they connect, but cannot tell anybody for good that the
/// broker [refuses](QueueError::refusal).
pub async fn declare(
    config: &config::RabbitMq,
    namespace: &Namespace,
    name: &str,
) -> Result<(), QueueError> {
    let broker = Broker::new(config, namespace, &format!("{name}, declaring"))?;
    broker.connect().await?.close().await;
    Ok(())
}
