//! Which Redis may sell: one is bound to the ledger before anything is warmed up, a reconciler tells
//! the ledger that it still sees it, and binds another when it is lost.
//!
//! The ledger first, then Redis: a death in between costs another wait, and never lets two sell.

use std::time::{Duration, Instant};

use shared::backends::Backends;
use shared::config::Config;
use shared::config::limits::{RECONCILE_ROUND, STORE_SEEN_EVERY, STORE_UNSEEN};
use shared::domain::{Admission, Misfit, Namespace, Onlooker, StoreId};
use shared::gate::{Found, Gate, Refused, Standing};
use shared::ledger::{BindOutcome, Ledger, LedgerError, SeeOutcome};
use shared::shutdown::Shutdown;
use shared::stock::{Stock, StockError};
use tokio::sync::watch;

/// How often a command looks at ledger and Redis before it gives up.
const LOOKS: u32 = 5;

/// How soon whoever saw a change looks again.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// Why somebody must not write into a Redis.
#[derive(Debug, thiserror::Error)]
pub enum NotBound {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{0}")]
    Unclear(String),
    #[error(
        "Redis has lost the store of this ledger, last seen {unseen_s} s ago; a reconciler binds a \
         new one within seconds: see that one runs (`lastunit reconciler`), then try again"
    )]
    Lost { unseen_s: u64 },
    #[error(transparent)]
    Backend(#[from] BindError),
}

/// A backend that failed to bind a store. Trying again is safe.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Makes sure that this Redis is the one that may sell, for a command that is about to write into
/// it. A ledger that was never bound is bound to it; one whose store is lost is left to a
/// reconciler. Waits for a moment at most.
pub async fn bind_first(config: &Config, ledger: &Ledger, stock: &Stock) -> Result<(), NotBound> {
    let mut gate = Gate::new(config, ledger, stock);
    let mut unclear = String::new();
    for _ in 0..LOOKS {
        match gate.look().await? {
            Found::Clear { standing: Standing::Bound, .. } => return Ok(()),
            Found::Clear { standing: Standing::Unbound, .. } => {
                bind(ledger, stock, &config.namespace, None).await?;
                continue;
            }
            Found::Clear { standing: Standing::Lost(lost), .. } => {
                return Err(NotBound::Lost { unseen_s: lost.unseen_for.as_secs() });
            }
            Found::Unclear(reason) => unclear = reason,
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Err(NotBound::Unclear(unclear))
}

/// Binds a new store in place of the lost one. Whoever was quicker, here or there, is seen by the
/// next look.
async fn bind(
    ledger: &Ledger,
    stock: &Stock,
    namespace: &Namespace,
    replaced: Option<StoreId>,
) -> Result<(), BindError> {
    let store = StoreId::mint();
    if ledger.bind_store(namespace, store, replaced).await? == BindOutcome::Bound {
        stock.bind_store(store, replaced).await?;
    }
    Ok(())
}

/// Keeps the binding between the ledger and Redis.
pub(crate) struct Keeper {
    namespace: Namespace,
    ledger: Ledger,
    stock: Stock,
    onlooker: Onlooker,
    bound: watch::Sender<bool>,
}

/// What a look at the store has found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sight {
    /// This Redis is the store that the ledger names, and the ledger has been told.
    Seen(StoreId),
    /// A store has just been bound, by whomever, or two looks have to agree: look again.
    Changing,
    /// Redis is empty, and it is too early to bind another.
    Lost(StoreId),
    Foreign(Misfit),
}

impl Keeper {
    pub(crate) fn new(namespace: &Namespace, backends: &Backends) -> Self {
        let (ledger, stock) = (backends.ledger.clone(), backends.stock.clone());
        let onlooker = Onlooker::new(namespace, STORE_UNSEEN, STORE_SEEN_EVERY);
        let (bound, _) = watch::channel(false);
        Self { namespace: namespace.clone(), ledger, stock, onlooker, bound }
    }

    /// Whether this Redis is the bound one, as of the last look. Nothing may be warmed up, settled or
    /// published again by what another one says.
    pub(crate) fn bound(&self) -> watch::Receiver<bool> {
        self.bound.subscribe()
    }

    /// Looks until it is told to stop.
    pub(crate) async fn keep(mut self, shutdown: &Shutdown) {
        let mut told = None;
        loop {
            let sight = self.look().await.map_err(|error| error.to_string());
            self.bound.send_replace(matches!(sight, Ok(Sight::Seen(_))));
            let pause = match sight {
                Ok(Sight::Seen(_)) => STORE_SEEN_EVERY,
                Ok(Sight::Changing) => LOOK_PAUSE,
                _ => RECONCILE_ROUND,
            };
            if sight != Ok(Sight::Changing) && told.as_ref() != Some(&sight) {
                tell(&sight);
                told = Some(sight);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shutdown.stop.cancelled() => return,
            }
        }
    }

    async fn look(&mut self) -> Result<Sight, BindError> {
        let since = Instant::now();
        // Redis first: see `admit`.
        let found = self.stock.store().await?;
        let named = self.ledger.binding().await?.store;
        let replaced = named.as_ref().map(|named| named.store);
        match (self.onlooker.look(named.as_ref(), found), found, replaced) {
            // Who was stopped in between saw it a while ago, and must not say that it is there now.
            (Admission::Admitted, Some(store), _) if since.elapsed() < STORE_SEEN_EVERY => {
                match self.ledger.see_store(store).await? {
                    SeeOutcome::Seen => Ok(Sight::Seen(store)),
                    SeeOutcome::NotBound => Ok(Sight::Changing),
                }
            }
            (Admission::Wait, None, Some(store)) => Ok(Sight::Lost(store)),
            (Admission::Refused(misfit), ..) => Ok(Sight::Foreign(misfit)),
            (Admission::Unbound | Admission::StoreLost, ..) => {
                bind(&self.ledger, &self.stock, &self.namespace, replaced).await?;
                Ok(Sight::Changing)
            }
            (Admission::Admitted | Admission::Wait, ..) => Ok(Sight::Changing),
        }
    }
}

fn tell(sight: &Result<Sight, String>) {
    match sight {
        Ok(Sight::Seen(store)) => tracing::info!(%store, "this Redis is the one that may sell"),
        Ok(Sight::Lost(store)) => tracing::warn!(
            %store, after = ?STORE_UNSEEN,
            "Redis has lost its data, or is another one; a new store is bound when nobody has seen the old one for so long"
        ),
        Ok(Sight::Foreign(misfit)) => tracing::error!(
            ?misfit,
            "this Redis does not belong to this ledger; nothing is warmed up until it does"
        ),
        Ok(Sight::Changing) => {}
        Err(error) => {
            tracing::warn!(error, "cannot look after the store until its backends are back")
        }
    }
}
