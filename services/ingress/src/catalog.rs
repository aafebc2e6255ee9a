//! Which items exist. Read from the ledger in the background, so that a purchase never waits for
//! it, and kept when the ledger is away.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use shared::config::limits::CATALOG_REFRESH;
use shared::domain::{EnvironmentId, ItemId};
use shared::ledger::{Item, Ledger, LedgerError};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// The items as last read; clones share them.
#[derive(Clone)]
pub(crate) struct Catalog {
    known: Arc<RwLock<Known>>,
}

/// What has been read so far.
enum Known {
    /// Nothing yet, and why.
    Nothing(String),
    Items {
        environment: EnvironmentId,
        items: HashMap<ItemId, Arc<Item>>,
    },
}

/// What the catalog says of an item.
pub(crate) enum Entry {
    Item {
        environment: EnvironmentId,
        item: Arc<Item>,
    },
    /// The ledger has no such item, as of the last reading.
    Unknown,
    /// The catalog could not be read yet.
    NotRead,
}

impl Catalog {
    /// One that knows nothing yet, so that nothing is sold.
    pub(crate) fn unread() -> Self {
        let nothing = Known::Nothing("the catalog has not been read yet".to_owned());
        Self { known: Arc::new(RwLock::new(nothing)) }
    }

    pub(crate) fn find(&self, item: &ItemId) -> Entry {
        match &*self.known.read().unwrap_or_else(PoisonError::into_inner) {
            Known::Nothing(_) => Entry::NotRead,
            Known::Items { environment, items } => match items.get(item) {
                Some(item) => Entry::Item { environment: *environment, item: Arc::clone(item) },
                None => Entry::Unknown,
            },
        }
    }

    /// Why there is no catalog yet, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &*self.known.read().unwrap_or_else(PoisonError::into_inner) {
            Known::Nothing(reason) => Some(reason.clone()),
            Known::Items { .. } => None,
        }
    }

    /// Reads the ledger again and again, until told to stop.
    pub(crate) async fn follow(&self, ledger: &Ledger, stop: &CancellationToken) {
        let mut since = None;
        let mut told = false;
        let mut ticks = tokio::time::interval(CATALOG_REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
            match self.read(ledger, since).await {
                Ok(read_at) => {
                    since = Some(read_at);
                    if told {
                        tracing::info!("the catalog follows the ledger again");
                        told = false;
                    }
                }
                Err(error) => {
                    if !told {
                        tracing::warn!(%error, "selling by the catalog as last read, if it was");
                        told = true;
                    }
                    self.excuse(error.to_string());
                }
            }
        }
    }

    async fn read(&self, ledger: &Ledger, since: Option<ReadAt>) -> Result<ReadAt, LedgerError> {
        let environment = ledger.environment().await?;
        let page = ledger.catalog(since).await?;
        let fresh = page.items.into_iter().map(|item| (item.sale.item.clone(), Arc::new(item)));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *known {
            Known::Items { items, .. } => items.extend(fresh),
            Known::Nothing(_) => *known = Known::Items { environment, items: fresh.collect() },
        }
        Ok(page.read_at)
    }

    /// Says why nothing has been read yet, unless something has.
    pub(crate) fn excuse(&self, reason: String) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Known::Nothing(old) = &mut *known {
            *old = reason;
        }
    }
}

type ReadAt = chrono::DateTime<chrono::Utc>;
