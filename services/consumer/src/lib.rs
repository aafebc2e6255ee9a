//! The consumer: message → commit → settle or compensate → ack. Run as many as you like.
//!
//! | file | step |
//! |---|---|
//! | [`intake`] | deliveries become reservations; what cannot be read is set aside |
//! | [`handle`] | one batch, from the ledger's decision to the last thing that follows from it |
//! | [`confirm`] | winners become final in Redis |
//!
//! A delivery is acknowledged after everything that follows from it is done, and nowhere else but
//! in [`run`]. A crash before that leads to a redelivery, which finds the decision in the ledger
//! and repeats what follows it.

mod confirm;
mod handle;
mod intake;

use shared::backends::{Backends, InvalidSettings};
use shared::config::Config;
use shared::config::limits::DELIVERY_BATCH;
use shared::queue::{Deliveries, Queue};
use shared::shutdown::Shutdown;

use crate::handle::Handler;

/// Consumes until it is told to stop, through every loss of Redis, RabbitMQ and the ledger.
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), InvalidSettings> {
    let backends = Backends::open(config, "consumer")?;
    let Some(environment) = backends.environment(&shutdown).await else { return Ok(()) };
    let queues = (0..config.rabbitmq.partitions).map(Queue::Orders).chain([Queue::Unrouted]);
    let mut deliveries =
        Deliveries::subscribe(&config.rabbitmq, &config.namespace, "consumer", queues.collect())?;
    let give_up = shutdown.give_up.clone();
    let handler = Handler { environment, backends, give_up };

    tracing::info!(%environment, "consuming");
    loop {
        let batch = tokio::select! {
            batch = deliveries.next_batch(DELIVERY_BATCH) => batch,
            () = shutdown.stop.cancelled() => break,
        };
        let intake = intake::sort(batch, environment);
        intake.newer.into_iter().for_each(|delivery| deliveries.leave(delivery));
        let done = handler.handle(intake.reservations, intake.dead).await;
        if done.is_none() {
            break;
        }
        deliveries.finish(intake.deliveries).await;
    }
    handler.backends.ledger.close().await;
    tracing::info!("stopped consuming; what was not acknowledged goes to others");
    Ok(())
}
