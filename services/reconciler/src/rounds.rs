//! The rounds of a reconciler. One task finishes overdue holds and tells the others how it has found
//! each item: one makes items ready to be sold, one compares them with the ledger.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use shared::config::limits::RECONCILE_ROUND;
use shared::domain::{BucketStanding, ItemId, Readiness, readiness};
use shared::ledger::{KeptItem, Ledger};
use shared::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};

use crate::overdue::Finisher;

/// Items that are worked on side by side.
pub(crate) const ITEMS_AT_ONCE: usize = 8;

/// An item, as a round has found it.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    pub(crate) kept: KeptItem,
    /// One for each bucket of the ledger's layout, and of an earlier one that Redis may still have.
    pub(crate) buckets: Vec<Option<BucketStanding>>,
}

/// Items that have to be compared soon; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Due(Arc<Mutex<HashSet<ItemId>>>);

impl Sighting {
    pub(crate) fn item(&self) -> &ItemId {
        &self.kept.item.sale.item
    }

    pub(crate) fn readiness(&self) -> Readiness {
        readiness(self.kept.item.epoch, self.kept.item.buckets, &self.buckets)
    }

    pub(crate) fn held(&self) -> u64 {
        self.buckets.iter().flatten().map(|bucket| bucket.held).sum()
    }

    pub(crate) fn unseen(&self) -> u64 {
        self.buckets.iter().flatten().map(|bucket| bucket.unseen).sum()
    }
}

impl Due {
    pub(crate) fn add(&self, item: ItemId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(item);
    }

    pub(crate) fn take(&self) -> HashSet<ItemId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One tick a round; a round that took long is followed by a pause.
pub(crate) fn ticks() -> Interval {
    let mut ticks = tokio::time::interval(RECONCILE_ROUND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// What finishing overdue holds needs.
pub(crate) struct Rounds {
    pub(crate) warm_lead: Duration,
    pub(crate) ledger: Ledger,
    pub(crate) finisher: Finisher,
    /// Whether this Redis is the one that may sell for the ledger.
    pub(crate) bound: watch::Receiver<bool>,
}

impl Rounds {
    /// Finishes overdue holds of every item, round after round.
    pub(crate) async fn keep(mut self, seen: watch::Sender<Vec<Sighting>>, shutdown: &Shutdown) {
        let mut rounds = ticks();
        let mut told = false;
        loop {
            tokio::select! {
                _ = rounds.tick() => {}
                () = shutdown.stop.cancelled() => return,
            }
            if !*self.bound.borrow_and_update() {
                // What another Redis holds is not this ledger's.
                seen.send_replace(Vec::new());
                continue;
            }
            let trouble = match self.ledger.kept_items(self.warm_lead).await {
                Ok(items) => {
                    let (sightings, trouble) = go_round(&self.finisher, items).await;
                    seen.send_replace(sightings);
                    trouble
                }
                Err(error) => Some(error.to_string()),
            };
            match trouble {
                None => told = false,
                Some(error) if !told => {
                    tracing::warn!(error, "overdue holds wait until their backends are back");
                    told = true;
                }
                Some(_) => {}
            }
        }
    }
}

/// Every item that could be seen, and what went wrong first.
async fn go_round(finisher: &Finisher, items: Vec<KeptItem>) -> (Vec<Sighting>, Option<String>) {
    let mut results = stream::iter(items)
        .map(async |kept| {
            let buckets = finisher.finish(&kept).await;
            buckets.map(|buckets| Sighting { kept, buckets })
        })
        .buffer_unordered(ITEMS_AT_ONCE);
    let (mut sightings, mut trouble) = (Vec::new(), None);
    while let Some(result) = results.next().await {
        match result {
            Ok(sighting) => sightings.push(sighting),
            Err(error) => {
                trouble.get_or_insert(error.to_string());
            }
        }
    }
    (sightings, trouble)
}
