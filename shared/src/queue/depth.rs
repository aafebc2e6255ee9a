//! How many messages wait in the order queues.

use std::collections::HashMap;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;

use super::connection::Broker;
use super::error::QueueError;
use super::names::Queue;
use crate::config;
use crate::domain::Namespace;

/// Messages of each partition that no consumer has taken yet. Asked seldom, so it connects anew.
pub async fn ready_messages(
    config: &config::RabbitMq,
    namespace: &Namespace,
) -> Result<HashMap<u16, u32>, QueueError> {
    let broker = Broker::new(config, namespace, "depth")?;
    let link = broker.connect().await?;
    let mut ready = HashMap::new();
    for partition in 0..config.partitions {
        let name = broker.topology.names.queue(Queue::Orders(partition));
        let passive = QueueDeclareOptions { passive: true, ..Default::default() };
        let declared = link
            .channel
            .queue_declare(name.as_str().into(), passive, FieldTable::default())
            .await
            .map_err(|source| QueueError::Declare {
                what: format!("the queue {name}"),
                address: broker.address.clone(),
                source: Box::new(source),
            })?;
        ready.insert(partition, declared.message_count());
    }
    link.close().await;
    Ok(ready)
}
