//! Keeps Redis in line with the ledger: items that have changed every minute, all of them every hour,
//! and at once whatever gives a reason.

use std::collections::HashSet;
use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::stream::{self, StreamExt};
use shared::backends::Backends;
use shared::config::limits::{COMPARE_ALL, COMPARE_CHANGED, COMPARE_OVERLAP};
use shared::domain::{ItemId, Readiness};
use shared::shutdown::Shutdown;
use tokio::sync::watch;

use crate::correct::Mode;
use crate::reconcile::reconcile;
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
}

impl Comparing {
    pub(crate) async fn keep(self, seen: watch::Receiver<Vec<Sighting>>, shutdown: &Shutdown) {
        let mut rounds = ticks();
        let now = Instant::now();
        let (until, unsettled) = (DateTime::UNIX_EPOCH, HashSet::new());
        let mut calendar = Calendar { changed: now, all: now, until, unsettled };
        loop {
            tokio::select! {
                _ = rounds.tick() => {}
                () = shutdown.stop.cancelled() => return,
            }
            let sightings = seen.borrow().clone();
            let due = calendar.due(&sightings, self.due.take());
            let unsettled: Vec<_> = stream::iter(due)
                .map(|item| self.compare(item, shutdown))
                .buffer_unordered(ITEMS_AT_ONCE)
                .filter_map(async |unsettled| unsettled)
                .collect()
                .await;
            calendar.unsettled.extend(unsettled);
        }
    }

    /// Returns the item when it has to be looked at again.
    async fn compare(&self, item: ItemId, shutdown: &Shutdown) -> Option<ItemId> {
        if shutdown.stop.is_cancelled() {
            return None;
        }
        match reconcile(&self.backends, &self.address, &item, Mode::Apply).await {
            Ok(reconciled) if reconciled.agrees() => None,
            Ok(_) => Some(item),
            Err(error) => {
                tracing::warn!(%item, %error, "an item could not be compared with the ledger; it is tried again");
                Some(item)
            }
        }
    }
}

impl Calendar {
    /// Live items that are to be compared now.
    fn due(&mut self, sightings: &[Sighting], asked: HashSet<ItemId>) -> HashSet<ItemId> {
        let now = Instant::now();
        let is_minute = now.duration_since(self.changed) >= COMPARE_CHANGED;
        let is_hour = now.duration_since(self.all) >= COMPARE_ALL;
        let since = self.until - COMPARE_OVERLAP;
        let is_due = |sighting: &&Sighting| {
            let kept = &sighting.kept;
            let has_changed = kept.decided_at > since || kept.item.changed_at > since;
            let is_unsettled = self.unsettled.contains(sighting.item());
            asked.contains(sighting.item())
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
}
