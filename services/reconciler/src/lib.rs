//! The reconciler: keeps Redis in line with the ledger. Run several if you like: they never do the
//! same work.
//!
//! | file | step |
//! |---|---|
//! | [`rounds`] | every second, each item that Redis has or should have |
//! | [`overdue`] | holds that nobody has finished in time: ask the ledger, then finish them |
//! | [`readying`] | items that are due, lost, changed or over |
//! | [`warm`] | makes an item sell from Redis: [`build`] from the ledger, or [`recover`] after a restart |
//! | [`terms`], [`retire`] | tells Redis new terms; lets ended items go |
//! | [`comparing`] | which items are compared with the ledger, and when |
//! | [`reconcile`] | one item: [`compare`], look for [`suspects`], [`correct`] under lock and freeze |
//! | [`drained`] | waits for orders that are on their way to the ledger |
//! | [`causes`] | which requests make an item differ |
//! | [`republish`] | orders that the ledger has lost |
//! | [`locked`] | the item lock, with its fencing number in the ledger |
//! | [`intake`] | dead letters become rows in the ledger, for operators |

mod build;
mod causes;
mod compare;
mod comparing;
mod correct;
mod drained;
mod intake;
mod locked;
mod overdue;
mod readying;
mod reconcile;
mod recover;
mod republish;
mod retire;
mod rounds;
mod suspects;
mod terms;
mod warm;

use shared::backends::{Backends, InvalidSettings};
use shared::config::Config;
use shared::config::limits::DELIVERY_BATCH;
use shared::crash;
use shared::queue::{Deliveries, Queue};
use shared::retry::until_done;
use shared::shutdown::Shutdown;
use tokio::sync::watch;

pub use causes::Causes;
pub use compare::CompareError;
pub use correct::{CorrectError, Corrected, Mode};
pub use drained::until_drained;
pub use locked::{LockItemError, lock_item};
pub use reconcile::{Numbers, ReconcileError, Reconciled, reconcile};
pub use republish::{Address, RepublishError};
pub use terms::tell_terms;
pub use warm::{WarmError, Warmed, warm};

use crate::comparing::Comparing;
use crate::overdue::Finisher;
use crate::readying::Readying;
use crate::rounds::{Due, keep_finishing};

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
    let address = Address { environment, partitions: config.rabbitmq.partitions };
    let finisher = Finisher::new(config, backends.clone(), address.clone());
    let due = Due::default();
    let readying = Readying::new(config, backends.clone(), due.clone());
    let comparing = Comparing { backends: backends.clone(), address, due };
    let (sender, seen) = watch::channel(Vec::new());
    tracing::info!(%environment, "reconciling");
    tokio::join!(
        keep_finishing(config, &backends.ledger, finisher, sender, &shutdown),
        readying.keep(seen.clone(), &shutdown),
        comparing.keep(seen, &shutdown),
        keep_parking(letters, &backends, &shutdown),
    );
    backends.ledger.close().await;
    tracing::info!("stopped reconciling");
    Ok(())
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
