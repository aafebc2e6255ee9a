//! The compensator: compensation → the ledger's word → restore → ack. Run as many as you like.
//!
//! | file | step |
//! |---|---|
//! | [`judge`] | one compensation: read it, ask the ledger whether the stock may go back |
//! | [`restore`] | give stock back in Redis |
//!
//! It decides in the ledger first: a compensation that overtakes its order leaves a tombstone
//! there, which the order then finds. It never gives up on a restore.

mod judge;
mod restore;

use shared::backends::{Backends, InvalidSettings, NotStarted};
use shared::config::Config;
use shared::config::limits::DELIVERY_BATCH;
use shared::crash;
use shared::gate;
use shared::queue::{Deliveries, Queue};
use shared::shutdown::Shutdown;

use crate::judge::{Judge, Judgement};

/// Compensates until it is told to stop, through every loss of Redis, RabbitMQ and the ledger.
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), NotStarted> {
    let backends = Backends::open(config, "compensator")?;
    let Some(environment) = backends.admit(config, &shutdown).await? else { return Ok(()) };
    gate::declare(config, "compensator", &shutdown).await?;
    let queues = vec![Queue::Compensations];
    let mut deliveries =
        Deliveries::subscribe(&config.rabbitmq, &config.namespace, "compensator", queues)
            .map_err(InvalidSettings::from)?;
    let Backends { stock, publisher, ledger } = backends;
    let judge = Judge { environment, ledger, give_up: shutdown.give_up.clone() };

    tracing::info!(%environment, "compensating");
    'batches: loop {
        let batch = tokio::select! {
            batch = deliveries.next_batch(DELIVERY_BATCH) => batch,
            () = shutdown.stop.cancelled() => break,
        };
        let (mut finished, mut restores, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
        for delivery in batch {
            match judge.judge(&delivery).await {
                Some(Judgement::Restore(item, request)) => restores.push((item, request)),
                Some(Judgement::Dead(letter)) => outgoing.push(letter),
                Some(Judgement::Newer) => {
                    deliveries.leave(delivery);
                    continue;
                }
                None => break 'batches,
            }
            finished.push(delivery);
        }
        crash::point("compensator.judged");
        let restored = restore::restore_all(&stock, restores, &shutdown.give_up).await;
        let published = publisher.publish_all(outgoing, &shutdown.give_up).await;
        if restored.is_none() || published.is_none() {
            break;
        }
        crash::point("compensator.restored");
        deliveries.finish(finished).await;
        crash::point("compensator.acknowledged");
    }
    judge.ledger.close().await;
    tracing::info!("stopped compensating; what was not acknowledged goes to others");
    Ok(())
}
