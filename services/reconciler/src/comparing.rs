//! Keeps Redis in line with the ledger: items that have changed every minute, all of them every hour,
//! and at once whatever gives a reason.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::stream::{self, StreamExt};
use shared::backends::Backends;
use shared::config::limits::{COMPARE_ALL, COMPARE_CHANGED, COMPARE_OVERLAP};
use shared::domain::{ItemId, Readiness};
use shared::shutdown::Shutdown;
use shared::stock::LockError;
use shared::telemetry::metrics::{self, ItemNumbers};
use tokio::sync::watch;

use crate::correct::Mode;
use crate::locked::LockItemError;
use crate::reconcile::{ReconcileError, Reconciled, reconcile};
use crate::republish::Address;
use crate::rounds::{Due, ITEMS_AT_ONCE, Sighting, ticks};

/// Compares items, round after round.
pub(crate) struct Comparing {
    pub(crate) backends: Backends,
    pub(crate) address: Address,
    pub(crate) due: Due,
}

/// When which items were compared last.
struct Calendar {
    changed: Instant,
    all: Instant,
    /// The latest change of any item that has been compared, by the ledger's clock.
    until: DateTime<Utc>,
    /// Items that did not agree, or could not be compared.
    unsettled: HashSet<ItemId>,
    /// Items that somebody asked for, and that were not live then: they have just been made ready.
    asked: HashSet<ItemId>,
    /// When each item was last seen to change. That never goes back, but the ledger may.
    decided: HashMap<ItemId, DateTime<Utc>>,
    /// What items differ by, those that do.
    drifts: HashMap<ItemId, u64>,
}

impl Comparing {
    pub(crate) async fn keep(self, seen: watch::Receiver<Vec<Sighting>>, shutdown: &Shutdown) {
        let mut rounds = ticks();
        let now = Instant::now();
        let mut calendar = Calendar {
            changed: now,
            all: now,
            until: DateTime::UNIX_EPOCH,
            unsettled: HashSet::new(),
            asked: HashSet::new(),
            decided: HashMap::new(),
            drifts: HashMap::new(),
        };
        loop {
            tokio::select! {
                _ = rounds.tick() => {}
                () = shutdown.stop.cancelled() => return,
            }
            let sightings = seen.borrow().clone();
            let due = calendar.due(&sightings, self.due.take());
            let compared: Vec<_> = stream::iter(due)
                .map(|item| self.compare(item, shutdown))
                .buffer_unordered(ITEMS_AT_ONCE)
                .collect()
                .await;
            calendar.note(&sightings, compared);
        }
    }

    /// `None`: it could not be compared, and is looked at again.
    async fn compare(&self, item: ItemId, shutdown: &Shutdown) -> (ItemId, Option<Reconciled>) {
        if shutdown.stop.is_cancelled() {
            return (item, None);
        }
        let reconciled = reconcile(&self.backends, &self.address, &item, Mode::Apply).await;
        let reconciled = reconciled.inspect_err(|error| {
            tracing::warn!(%item, %error, "an item could not be compared with the ledger; it is tried again");
            if matches!(error, ReconcileError::Lock(LockItemError::Lock(LockError::Busy { .. }))) {
                // Such as by somebody who has died: soon it is free.
                self.due.add(item.clone());
            }
        });
        (item, reconciled.ok())
    }
}

/// Shows an item in the numbers of this process.
fn show(item: &ItemId, reconciled: &Reconciled) {
    let numbers = &reconciled.numbers;
    let numbers = ItemNumbers {
        available: numbers.available,
        held: numbers.held,
        moving: numbers.moving,
        confirmed_units: numbers.confirmed_units,
        restored_units: numbers.restored_units,
        drift: reconciled.drift(),
    };
    metrics::item(item, numbers);
}

impl Calendar {
    /// Live items that are to be compared now.
    fn due(&mut self, sightings: &[Sighting], asked: HashSet<ItemId>) -> HashSet<ItemId> {
        let now = Instant::now();
        let is_minute = now.duration_since(self.changed) >= COMPARE_CHANGED;
        let is_hour = now.duration_since(self.all) >= COMPARE_ALL;
        let since = self.until - COMPARE_OVERLAP;
        self.asked.extend(asked);
        for Sighting { kept, .. } in sightings {
            let item = &kept.item.sale.item;
            let before = self.decided.insert(item.clone(), kept.decided_at);
            if before.is_some_and(|before| before > kept.decided_at) {
                self.asked.insert(item.clone());
            }
        }
        let is_due = |sighting: &&Sighting| {
            let kept = &sighting.kept;
            let has_changed = kept.decided_at > since || kept.item.changed_at > since;
            let is_unsettled = self.unsettled.contains(sighting.item());
            self.asked.contains(sighting.item())
                || (sighting.unseen() > 0 && !is_unsettled)
                || is_hour
                || (is_minute && (has_changed || sighting.held() > 0 || is_unsettled))
        };
        let is_live = |sighting: &&Sighting| sighting.readiness() == Readiness::Live;
        let due: HashSet<ItemId> = sightings
            .iter()
            .filter(is_live)
            .filter(is_due)
            .map(|sighting| sighting.item().clone())
            .collect();
        self.asked.retain(|item| !due.contains(item));
        let latest = sightings.iter().map(|one| one.kept.decided_at.max(one.kept.item.changed_at));
        if is_minute {
            self.changed = now;
            self.until = latest.max().unwrap_or(self.until).max(self.until);
            self.unsettled.clear();
        }
        if is_hour {
            self.all = now;
        }
        due
    }

    /// Takes note of what comparisons have found, and shows it.
    fn note(&mut self, sightings: &[Sighting], compared: Vec<(ItemId, Option<Reconciled>)>) {
        for (item, reconciled) in compared {
            if let Some(reconciled) = &reconciled {
                show(&item, reconciled);
                self.drifts.insert(item.clone(), reconciled.drift().unsigned_abs());
            }
            if !reconciled.is_some_and(|reconciled| reconciled.agrees()) {
                self.unsettled.insert(item);
            }
        }
        let in_redis: HashSet<_> = sightings.iter().map(Sighting::item).collect();
        self.drifts.retain(|item, units| *units > 0 && in_redis.contains(item));
        metrics::law(self.drifts.values().sum());
    }
}
