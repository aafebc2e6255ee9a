//! Reservations that wait in the order queues, each with its hold in Redis.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use shared::config::limits::{PUBLISH_BATCH, RESERVE_BATCH};
use shared::contract::ReservationsPlaced;
use shared::domain::{ItemId, Reservation, partition};
use shared::queue::{Outgoing, Publisher};
use shared::stock::Layout;
use tokio_util::sync::CancellationToken;

use super::taking;
use crate::deployment::{Deployment, POLL};

const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// Takes stock for so many purchases of each item and publishes them as ingress would under load: in
/// messages of [`PUBLISH_BATCH`]. Returns how many there are.
pub async fn build(
    deployment: &Deployment,
    items: &[(ItemId, Layout)],
    of_each: u64,
) -> anyhow::Result<u64> {
    let config = &deployment.config;
    let publisher = Publisher::connect(&config.rabbitmq, &config.namespace, "bench")?;
    let connected = Instant::now() + CONNECTED_WITHIN;
    while let Some(trouble) = publisher.trouble() {
        ensure!(Instant::now() < connected, "cannot publish a backlog: {trouble}");
        tokio::time::sleep(POLL).await;
    }
    let mut placed = 0;
    for (item, layout) in items {
        let requests = taking::requests(item, "q", of_each)?;
        let taken =
            taking::take(&deployment.stock, item, *layout, &requests, (RESERVE_BATCH, 2)).await?;
        placed += taken.held.len() as u64;
        publish(deployment, &publisher, taken.held).await?;
    }
    Ok(placed)
}

async fn publish(
    deployment: &Deployment,
    publisher: &Publisher,
    held: Vec<Reservation>,
) -> anyhow::Result<()> {
    let partitions = deployment.config.rabbitmq.partitions;
    let messages = held.chunks(PUBLISH_BATCH).map(|reservations| {
        let partition = partition(&reservations[0].item, partitions);
        let (environment, reservations) = (deployment.environment, reservations.to_vec());
        Outgoing::reservations(partition, &ReservationsPlaced { environment, reservations })
    });
    let messages = messages.collect();
    let never = CancellationToken::new();
    publisher.publish_all(messages, &never).await.context("the broker did not take a backlog")
}
