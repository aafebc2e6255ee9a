//! The reconciler: keeps Redis in line with the ledger. Run several if you like: they never do the
//! same work.
//!
//! | file | step |
//! |---|---|
//! | [`rounds`] | every second, each item that Redis has or should have |
//! | [`overdue`] | holds that nobody has finished in time: ask the ledger, then finish them |
//! | [`transfers`] | units between two buckets that nobody has brought home |
//! | [`readying`] | items that are due, lost, changed or over |
//! | [`warm`] | makes an item sell from Redis: [`build`] from the ledger, or [`recover`] after a restart |
//! | [`rebucket`] | divides an item into another number of buckets while it is on sale |
//! | [`terms`], [`retire`] | tells Redis new terms; lets ended items go |
//! | [`comparing`] | which items are compared with the ledger, and when |
//! | [`reconcile`] | one item: [`compare`], look for [`suspects`], [`correct`] under lock and freeze |
//! | [`drained`] | waits for orders that are on their way to the ledger |
//! | [`causes`] | which requests make an item differ |
//! | [`republish`] | orders that the ledger has lost |
//! | [`locked`], [`standstill`] | the item lock, with its fencing number in the ledger; a freeze of all buckets |
//! | [`intake`] | dead letters become rows in the ledger, for operators |
//! | [`explain`] | one request's whole story, for operators |
//! | [`letters`] | what operators do with them: plan, replay, discard, edit |
//! | [`store`] | which Redis may sell: binds it, sees it, binds another when it is lost |

mod build;
mod causes;
mod compare;
mod comparing;
mod correct;
mod drained;
pub mod explain;
mod intake;
pub mod letters;
mod locked;
mod overdue;
mod readying;
mod rebucket;
mod reconcile;
mod recover;
mod republish;
mod retire;
mod rounds;
mod standstill;
mod store;
mod suspects;
mod terms;
mod transfers;
mod warm;

use shared::backends::{Backends, InvalidSettings, NotStarted};
use shared::config::Config;
use shared::config::limits::{DELIVERY_BATCH, SHUTDOWN_GRACE};
use shared::crash;
use shared::gate::{self, Refused};
use shared::queue::{Deliveries, Queue};
use shared::retry::until_done;
use shared::shutdown::Shutdown;
use tokio::sync::watch;

pub use causes::Causes;
pub use compare::CompareError;
pub use correct::{CorrectError, Corrected, Mode};
pub use drained::until_drained;
pub use locked::{LockItemError, lock_item};
pub use rebucket::{RebucketError, Rebucketed, rebucket};
pub use reconcile::{Numbers, ReconcileError, Reconciled, reconcile};
pub use republish::{Address, RepublishError};
pub use store::{NotBound, bind_first};
pub use terms::{TermsError, tell_terms};
pub use warm::{WarmError, Warmed, warm};

use crate::comparing::Comparing;
use crate::letters::keep_letters;
use crate::overdue::Finisher;
use crate::readying::Readying;
use crate::rounds::{Due, Rounds};
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
    let address = Address { environment, partitions: config.rabbitmq.partitions };
    let finisher = Finisher::new(config, backends.clone(), address.clone());
    let due = Due::default();
    let readying = Readying::new(config, backends.clone(), due.clone());
    let comparing = Comparing { backends: backends.clone(), address, due };
    let (sender, seen) = watch::channel(Vec::new());
    let (warm_lead, ledger) = (config.reconciler.warm_lead(), backends.ledger.clone());
    let rounds = Rounds { warm_lead, ledger, finisher, bound: keeper.bound() };
    tracing::info!(%environment, "reconciling");
    let (declared, ..) = tokio::join!(
        declare(config, &shutdown),
        rounds.keep(sender, &shutdown),
        readying.keep(seen.clone(), &shutdown),
        comparing.keep(seen, &shutdown),
        keeper.keep(&shutdown),
        keep_parking(letters, &backends, &shutdown),
        keep_letters(&config.dead_letters, &backends, &shutdown),
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
