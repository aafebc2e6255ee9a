//! The reconciler: keeps Redis in line with the ledger. Run several if you like: they never do the
//! same work.
//!
//! | file | step |
//! |---|---|
//! | [`overdue`] | holds that nobody has finished in time: ask the ledger, then finish them |
//! | [`intake`] | dead letters become rows in the ledger, for operators |
//! | [`store`] | which Redis may sell: binds it, sees it, binds another when it is lost |
//! | [`warm`] | builds an item's Redis state before its sale |

mod intake;
mod overdue;
mod store;
mod warm;

use shared::backends::{Backends, InvalidSettings, NotStarted};
use shared::config::Config;
use shared::config::limits::{DELIVERY_BATCH, RECONCILE_ROUND, SHUTDOWN_GRACE};
use shared::crash;
use shared::gate::{self, Refused};
use shared::queue::{Deliveries, Queue};
use shared::retry::until_done;
use shared::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

pub use store::{NotBound, bind_first};
pub use warm::{WarmError, Warmed, warm};

use crate::overdue::Finisher;
use crate::store::Keeper;

/// Reconciles until it is told to stop, through every loss of Redis, RabbitMQ and the ledger.
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), NotStarted> {
    let backends = Backends::open(config, "reconciler")?;
    let Some(environment) = backends.admit(config, &shutdown).await? else { return Ok(()) };
    // Of its own, so that a refusal ends this service and no other of the process.
    let shutdown = shutdown.child();
    let letters = Deliveries::subscribe(
        &config.rabbitmq,
        &config.namespace,
        "reconciler, dead letters",
        vec![Queue::Dead],
    )
    .map_err(InvalidSettings::from)?;
    let keeper = Keeper::new(&config.namespace, &backends);
    let finisher = Finisher::new(config, backends.clone(), environment);
    tracing::info!(%environment, "reconciling");
    let (declared, ..) = tokio::join!(
        declare(config, &shutdown),
        keep_finishing(finisher, keeper.bound(), &shutdown),
        keeper.keep(&shutdown),
        keep_parking(letters, &backends, &shutdown),
    );
    backends.ledger.close().await;
    tracing::info!("stopped reconciling");
    Ok(declared?)
}

/// Beside everything else: a broker that is away keeps nobody from what the ledger has decided.
async fn declare(config: &Config, shutdown: &Shutdown) -> Result<(), Refused> {
    let declared = gate::declare(config, "reconciler", shutdown).await;
    if declared.is_err() {
        shutdown.begin(SHUTDOWN_GRACE);
    }
    declared
}

async fn keep_finishing(finisher: Finisher, mut bound: watch::Receiver<bool>, shutdown: &Shutdown) {
    let mut rounds = tokio::time::interval(RECONCILE_ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = false;
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = shutdown.stop.cancelled() => return,
        }
        tokio::select! {
            // What another Redis holds is not this ledger's to finish.
            _ = bound.wait_for(|bound| *bound) => {}
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
