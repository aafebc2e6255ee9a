//! The consumer: message → commit → settle or compensate → ack. Run as many as you like.
//!
//! | file | step |
//! |---|---|
//! | [`intake`] | deliveries become reservations; what cannot be read is set aside |
//! | [`handle`] | one batch, from the ledger's decision to the last thing that follows from it |
//! | [`decide`] | the ledger decides; a batch that holds a hopeless reservation is split |
//! | [`confirm`] | winners become final in Redis |
//!
//! A delivery is acknowledged after everything that follows from it is done, and nowhere else but
//! in [`run`]. A crash before that leads to a redelivery, which finds the decision in the ledger
//! and repeats what follows it.

mod confirm;
mod decide;
mod handle;
mod intake;

use shared::backends::{Backends, InvalidSettings};
use shared::config::Config;
use shared::config::limits::{DELIVERY_BATCH, PARKED_IN_A_ROW};
use shared::crash;
use shared::gate::{self, Refused};
use shared::queue::{Deliveries, Queue, QueueError};
use shared::shutdown::Shutdown;

use crate::handle::{Handled, Handler};

/// Why a consumer does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ConsumerError {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(
        "{PARKED_IN_A_ROW} reservations in a row went to the dead letters; compare the ledger's schema with this release (`lastunit migrate`) before you start consumers again"
    )]
    TooManyParked,
}

/// Consumes until it is told to stop, through every loss of Redis, RabbitMQ and the ledger.
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), ConsumerError> {
    let backends = Backends::open(config, "consumer")?;
    let Some(environment) = backends.admit(config, &shutdown).await? else { return Ok(()) };
    gate::declare(config, "consumer", &shutdown).await?;
    let queues = (0..config.rabbitmq.partitions).map(Queue::Orders).chain([Queue::Unrouted]);
    let mut deliveries =
        Deliveries::subscribe(&config.rabbitmq, &config.namespace, "consumer", queues.collect())?;
    let give_up = shutdown.give_up.clone();
    let mut handler = Handler { environment, backends, give_up, parked_in_a_row: 0 };

    tracing::info!(%environment, "consuming");
    loop {
        let batch = tokio::select! {
            batch = deliveries.next_batch(DELIVERY_BATCH) => batch,
            () = shutdown.stop.cancelled() => break,
        };
        crash::point("consumer.taken");
        let intake = intake::sort(batch, environment);
        intake.newer.into_iter().for_each(|delivery| deliveries.leave(delivery));
        let handled = handler.handle(intake.reservations, intake.dead).await;
        if handled == Handled::GivenUp {
            break;
        }
        crash::point("consumer.settled");
        deliveries.finish(intake.deliveries).await;
        crash::point("consumer.acknowledged");
        if handled == Handled::Suspicious {
            tracing::error!(
                "{PARKED_IN_A_ROW} reservations in a row went to the dead letters: the ledger's schema or \
                 this release is wrong, not they; stopped before all of the queue follows"
            );
            return Err(ConsumerError::TooManyParked);
        }
    }
    handler.backends.ledger.close().await;
    tracing::info!("stopped consuming; what was not acknowledged goes to others");
    Ok(())
}
