//! The reconciler: keeps Redis in line with the ledger. Run several if you like: they never do the
//! same work.
//!
//! | file | step |
//! |---|---|
//! | [`overdue`] | holds that nobody has finished in time: ask the ledger, then finish them |
//! | [`intake`] | dead letters become rows in the ledger, for operators |
//! | [`explain`] | one request's whole story, for operators |
//! | [`letters`] | what operators do with them: plan, replay, discard, edit |
//! | [`warm`] | builds an item's Redis state before its sale |

pub mod explain;
mod intake;
pub mod letters;
mod overdue;
mod warm;

use shared::backends::{Backends, InvalidSettings};
use shared::config::Config;
use shared::config::limits::{DELIVERY_BATCH, RECONCILE_ROUND};
use shared::crash;
use shared::queue::{Deliveries, Queue};
use shared::retry::until_done;
use shared::shutdown::Shutdown;
use tokio::time::MissedTickBehavior;

pub use warm::{WarmError, Warmed, warm};

use crate::letters::keep_letters;
use crate::overdue::Finisher;

/// Reconciles until it is told to stop, through every loss of Redis, RabbitMQ and the ledger.
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), InvalidSettings> {
    let backends = Backends::open(config, "reconciler")?;
    let Some(environment) = backends.environment(&shutdown).await else { return Ok(()) };
    let letters = Deliveries::subscribe(
        &config.rabbitmq,
        &config.namespace,
        "reconciler, dead letters",
        vec![Queue::Dead],
    )?;
    let finisher = Finisher::new(config, backends.clone(), environment);
    tracing::info!(%environment, "reconciling");
    tokio::join!(
        keep_finishing(finisher, &shutdown),
        keep_parking(letters, &backends, &shutdown),
        keep_letters(&config.dead_letters, &backends, &shutdown),
    );
    backends.ledger.close().await;
    tracing::info!("stopped reconciling");
    Ok(())
}

async fn keep_finishing(finisher: Finisher, shutdown: &Shutdown) {
    let mut rounds = tokio::time::interval(RECONCILE_ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = false;
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = shutdown.stop.cancelled() => return,
        }
        match finisher.go_round().await {
            Ok(()) => told = false,
            Err(error) => {
                if !told {
                    tracing::warn!(%error, "overdue holds wait until their backends are back");
                    told = true;
                }
            }
        }
    }
}

async fn keep_parking(mut letters: Deliveries, backends: &Backends, shutdown: &Shutdown) {
    loop {
        let batch = tokio::select! {
            batch = letters.next_batch(DELIVERY_BATCH) => batch,
            () = shutdown.stop.cancelled() => return,
        };
        let rows: Vec<_> = batch.iter().flat_map(intake::letters).collect();
        let parked = until_done(
            &shutdown.give_up,
            || backends.ledger.park(&rows),
            |error, pause| tracing::warn!(%error, ?pause, "keeping dead letters until the ledger takes them"),
        );
        if parked.await.is_none() {
            return;
        }
        crash::point("reconciler.parked");
        letters.finish(batch).await;
    }
}
