//! Keeps items ready to be sold: warms up what is due, brings back what Redis has lost, tells it new
//! terms, and lets ended items go.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::stream::{self, StreamExt};
use shared::backends::Backends;
use shared::config::Config;
use shared::config::limits::DRAIN;
use shared::domain::{BucketCount, Drain, ItemId, Readiness, partition};
use shared::queue::ready_messages;
use shared::shutdown::Shutdown;
use tokio::sync::watch;

use crate::retire::retire;
use crate::rounds::{Due, ITEMS_AT_ONCE, Sighting};
use crate::terms::tell_terms;
use crate::warm::warm;

/// Makes items ready, sighting by sighting.
pub(crate) struct Readying {
    config: Config,
    backends: Backends,
    due: Due,
    /// Lost items that wait until what was reserved earlier has been decided.
    drains: HashMap<ItemId, Drain>,
    /// Drains count from here.
    began: Instant,
    /// The terms that Redis was told last.
    told: HashMap<ItemId, DateTime<Utc>>,
}

/// What an item needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Warm,
    /// `are_news`: they changed while this reconciler was watching.
    Terms {
        are_news: bool,
    },
    EpochInLedger {
        epoch: u64,
        buckets: BucketCount,
    },
    Retire,
}

impl Readying {
    pub(crate) fn new(config: &Config, backends: Backends, due: Due) -> Self {
        let (drains, told) = (HashMap::new(), HashMap::new());
        Self { config: config.clone(), backends, due, drains, began: Instant::now(), told }
    }

    pub(crate) async fn keep(
        mut self,
        mut seen: watch::Receiver<Vec<Sighting>>,
        shutdown: &Shutdown,
    ) {
        loop {
            tokio::select! {
                changed = seen.changed() => if changed.is_err() { return },
                () = shutdown.stop.cancelled() => return,
            }
            let sightings = seen.borrow_and_update().clone();
            self.look_for_drained(&sightings).await;
            let needs: Vec<_> = sightings
                .into_iter()
                .filter_map(|sighting| Some((self.need(&sighting)?, sighting)))
                .collect();
            let met: Vec<_> = stream::iter(needs)
                .map(|(need, sighting)| self.meet(need, sighting, shutdown))
                .buffer_unordered(ITEMS_AT_ONCE)
                .filter_map(async |met| met)
                .collect()
                .await;
            for sighting in met {
                self.drains.remove(sighting.item());
                self.told.insert(sighting.item().clone(), sighting.kept.item.changed_at);
            }
        }
    }

    /// Items that nobody can reserve any more wait for their queues.
    async fn look_for_drained(&mut self, sightings: &[Sighting]) {
        let now = self.began.elapsed();
        let is_lost = |sighting: &&Sighting| sighting.readiness().has_lost_sales();
        let lost: HashSet<_> = sightings.iter().filter(is_lost).map(Sighting::item).collect();
        self.drains.retain(|item, _| lost.contains(item));
        if lost.is_empty() {
            return;
        }
        let ready = ready_messages(&self.config.rabbitmq, &self.config.namespace).await;
        if let Err(error) = &ready {
            tracing::warn!(%error, "cannot see whether messages wait; lost items wait on");
        }
        for item in lost {
            let drain = self.drains.entry(item.clone()).or_insert_with(|| {
                tracing::warn!(%item, "Redis may have forgotten sales; nothing is sold until they are decided and compared");
                Drain::begin(DRAIN, now)
            });
            let partition = partition(item, self.config.rabbitmq.partitions);
            let waiting = ready.as_ref().ok().and_then(|ready| ready.get(&partition).copied());
            drain.observe(now, waiting.unwrap_or(u32::MAX));
        }
    }

    fn need(&self, sighting: &Sighting) -> Option<Need> {
        let kept = &sighting.kept;
        if kept.is_over {
            return Some(Need::Retire);
        }
        match sighting.readiness() {
            Readiness::Live => {
                let told = self.told.get(sighting.item());
                let is_told = told == Some(&kept.item.changed_at);
                (!is_told).then_some(Need::Terms { are_news: told.is_some() })
            }
            Readiness::LedgerBehind { epoch, buckets } => {
                Some(Need::EpochInLedger { epoch, buckets })
            }
            Readiness::Built | Readiness::Outdated | Readiness::Cold { in_flight: false } => {
                Some(Need::Warm)
            }
            Readiness::Uncompared | Readiness::Cold { in_flight: true } => {
                let drain = self.drains.get(sighting.item())?;
                drain.is_over(self.began.elapsed()).then_some(Need::Warm)
            }
        }
    }

    /// Returns the sighting when its need was met, and has the item compared.
    async fn meet(&self, need: Need, sighting: Sighting, shutdown: &Shutdown) -> Option<Sighting> {
        if shutdown.stop.is_cancelled() {
            return None;
        }
        let Backends { ledger, stock, .. } = &self.backends;
        let item = sighting.item();
        let met = match need {
            Need::Warm => warm(ledger, stock, item).await.map(drop).map_err(|e| e.to_string()),
            Need::Terms { .. } => {
                tell_terms(ledger, stock, item).await.map(drop).map_err(|e| e.to_string())
            }
            Need::EpochInLedger { epoch, buckets } => {
                tracing::error!(%item, epoch, "Redis knows an epoch that the ledger does not: the ledger has gone back in time");
                ledger.catch_up_epoch(item, epoch, buckets).await.map_err(|e| e.to_string())
            }
            Need::Retire => {
                retire(ledger, stock, &sighting.kept.item).await.map_err(|e| e.to_string())
            }
        };
        if let Err(error) = met {
            // Such as another reconciler that was quicker.
            tracing::warn!(%item, ?need, error, "an item is not ready; it is tried again");
            return None;
        }
        if !matches!(need, Need::Retire | Need::Terms { are_news: false }) {
            self.due.add(item.clone());
        }
        Some(sighting)
    }
}
