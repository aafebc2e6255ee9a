//! The consumer: message → commit → settle or compensate → ack. Run as many as you like.
//!
//! | file | step |
//! |---|---|
//! | [`intake`] | deliveries become reservations; what cannot be read is set aside |
//! | [`commit`] | batch by batch, the ledger decides |
//! | [`decide`] | whatever happens meanwhile; a batch that holds a hopeless reservation is split |
//! | [`settle`] | what follows from the decisions, and the ack |
//! | [`confirm`] | winners become final in Redis |
//!
//! Reading, committing and settling are three tasks with a bounded queue between each two, so that
//! Redis hears of one batch while the ledger decides the next.
//!
//! A delivery is acknowledged after everything that follows from it is done, and nowhere else but
//! in [`settle`]. A crash before that leads to a redelivery, which finds the decision in the ledger
//! and repeats what follows it.

mod commit;
mod confirm;
mod decide;
mod intake;
mod settle;

use shared::backends::{Backends, InvalidSettings};
use shared::config::Config;
use shared::config::limits::{COMMITTED_WAITING, DELIVERY_BATCH, PARKED_IN_A_ROW, TAKEN_WAITING};
use shared::crash;
use shared::domain::EnvironmentId;
use shared::gate::{self, Refused};
use shared::queue::{Deliveries, Queue, QueueError};
use shared::shutdown::Shutdown;
use tokio::sync::mpsc;
use tokio::task::JoinError;

use crate::commit::{Committer, End};
use crate::intake::{Intake, Taken};
use crate::settle::Settler;

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
    let Backends { stock, publisher, ledger } = backends;
    let give_up = shutdown.give_up.clone();
    let committer = Committer { environment, ledger: ledger.clone(), give_up, parked_in_a_row: 0 };
    let settler = Settler { stock, publisher, give_up: shutdown.give_up.clone() };
    let (taken, to_commit) = mpsc::channel(TAKEN_WAITING);
    let (committed, to_settle) = mpsc::channel(COMMITTED_WAITING);
    let committing = tokio::spawn(committer.run(to_commit, committed));
    let settling = tokio::spawn(settler.run(to_settle));

    tracing::info!(%environment, "consuming");
    take(&mut deliveries, environment, &shutdown, taken).await;
    // Before the subscription goes, because acks travel on its channel.
    let end = committing.await.unwrap_or_else(go_on_panicking);
    settling.await.unwrap_or_else(go_on_panicking);
    if end == End::Suspicious {
        tracing::error!(
            "{PARKED_IN_A_ROW} reservations in a row went to the dead letters: the ledger's schema or \
             this release is wrong, not they; stopped before all of the queue follows"
        );
        return Err(ConsumerError::TooManyParked);
    }
    ledger.close().await;
    tracing::info!("stopped consuming; what was not acknowledged goes to others");
    Ok(())
}

/// Hands on what comes, until it is told to stop or nobody commits any more.
async fn take(
    deliveries: &mut Deliveries,
    environment: EnvironmentId,
    shutdown: &Shutdown,
    taken: mpsc::Sender<Taken>,
) {
    loop {
        let batch = tokio::select! {
            batch = deliveries.next_batch(DELIVERY_BATCH) => batch,
            () = shutdown.stop.cancelled() => return,
            () = taken.closed() => return,
        };
        crash::point("consumer.taken");
        for delivery in batch {
            match intake::read(delivery, environment) {
                Intake::Newer(delivery) => deliveries.leave(delivery),
                Intake::Taken(one) => {
                    if taken.send(one).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// A bug in one stage is one of the whole consumer: whoever watches it sees it end.
fn go_on_panicking<T>(error: JoinError) -> T {
    std::panic::resume_unwind(error.into_panic())
}
