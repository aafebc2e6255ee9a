//! Holds that nobody has finished in time: the ledger is asked, and what it says is done. A hold is
//! handed to one reconciler at a time; its next look is put off in the same step.

use std::collections::HashMap;

use shared::backends::Backends;
use shared::config::Config;
use shared::config::limits::TRANSFER_DEADLINE;
use shared::crash;
use shared::domain::{
    BucketStanding, OverdueStep, Reservation, ReservationId, Whereabouts, finish_overdue, partition,
};
use shared::ledger::{KeptItem, LedgerError};
use shared::queue::{QueueError, ready_messages};
use shared::stock::{Bucket, Overdue, RestoreRequest, StockError};
use shared::telemetry::metrics;

use crate::republish::{Address, RepublishError, publish};
use crate::transfers::finish_transfers;

/// Why an item's overdue holds could not be finished. What was claimed comes up again at its next
/// look.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FinishError {
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Publish(#[from] RepublishError),
}

/// Finishes overdue holds.
pub(crate) struct Finisher {
    config: Config,
    backends: Backends,
    address: Address,
}

/// What has to be done for the overdue holds of one bucket.
#[derive(Default)]
struct Steps {
    confirm: Vec<Reservation>,
    restore: Vec<RestoreRequest>,
    publish: Vec<Reservation>,
}

impl Finisher {
    pub(crate) fn new(config: &Config, backends: Backends, address: Address) -> Self {
        Self { config: config.clone(), backends, address }
    }

    /// Finishes what is overdue of an item, and says how each of its buckets stands: those of the
    /// ledger's layout, and those of an earlier one that Redis may still have.
    pub(crate) async fn finish(
        &self,
        item: &KeptItem,
    ) -> Result<Vec<Option<BucketStanding>>, FinishError> {
        let bucket = |number| Bucket { item: item.item.sale.item.clone(), number };
        let first = self.finish_bucket(item, &bucket(0)).await?;
        let count = first.map_or(item.item.buckets, |first| first.buckets.max(item.item.buckets));
        let mut standings = vec![first];
        for number in 1..count.get() {
            standings.push(self.finish_bucket(item, &bucket(number)).await?);
        }
        Ok(standings)
    }

    async fn finish_bucket(
        &self,
        item: &KeptItem,
        bucket: &Bucket,
    ) -> Result<Option<BucketStanding>, FinishError> {
        loop {
            let claimed = self.backends.stock.claim_overdue(bucket).await?;
            if claimed.standing.is_some_and(|standing| standing.is_moving) {
                finish_transfers(&self.backends.stock, bucket, TRANSFER_DEADLINE).await?;
            }
            if claimed.overdue.is_empty() {
                return Ok(claimed.standing);
            }
            crash::point("reconciler.claimed");
            let steps = self.steps(item, claimed.overdue).await?;
            self.take(bucket, steps).await?;
            crash::point("reconciler.finished");
        }
    }

    async fn steps(&self, item: &KeptItem, overdue: Vec<Overdue>) -> Result<Steps, FinishError> {
        let requests: Vec<_> = overdue.iter().map(|one| one.reservation.request_id).collect();
        let orders = self.backends.ledger.find_orders(&requests).await?;
        let undecided: Vec<_> = overdue
            .iter()
            .filter(|one| !orders.contains_key(&one.reservation.request_id))
            .map(|one| one.reservation.clone())
            .collect();
        let whereabouts = self.whereabouts(item, &undecided).await?;
        let mut steps = Steps::default();
        for Overdue { reservation, tries } in overdue {
            let request_id = reservation.request_id;
            let whereabouts = whereabouts
                .get(&reservation.reservation_id)
                .copied()
                .unwrap_or(Whereabouts::Unknown);
            let step = finish_overdue(&reservation, orders.get(&request_id), whereabouts);
            tracing::info!(%request_id, item = %item.item.sale.item, tries, ?step, "an overdue hold");
            metrics::overdue(step.name());
            match step {
                OverdueStep::Confirm => steps.confirm.push(reservation),
                OverdueStep::PublishAgain => steps.publish.push(reservation),
                OverdueStep::LeaveParked | OverdueStep::LeaveQueued => {}
                OverdueStep::Restore(verdict) => steps.restore.push(RestoreRequest {
                    request_id,
                    reservation_id: reservation.reservation_id,
                    buyer: reservation.buyer,
                    quantity: reservation.quantity,
                    epoch: reservation.epoch,
                    verdict,
                }),
            }
        }
        Ok(steps)
    }

    /// Where the messages of undecided reservations are.
    async fn whereabouts(
        &self,
        item: &KeptItem,
        undecided: &[Reservation],
    ) -> Result<HashMap<ReservationId, Whereabouts>, FinishError> {
        if undecided.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<_> = undecided.iter().map(|one| one.reservation_id).collect();
        let parked = self.backends.ledger.parked(&ids).await?;
        let ready = ready_messages(&self.config.rabbitmq, &self.config.namespace).await?;
        let partition = partition(&item.item.sale.item, self.config.rabbitmq.partitions);
        let waiting = ready.get(&partition).is_some_and(|ready| *ready > 0);
        let of = |one: &Reservation| {
            if parked.contains(&one.reservation_id) {
                Whereabouts::Parked
            } else if waiting && one.reserved_at >= item.decided_until {
                Whereabouts::Queued
            } else {
                Whereabouts::Unknown
            }
        };
        Ok(undecided.iter().map(|one| (one.reservation_id, of(one))).collect())
    }

    async fn take(&self, bucket: &Bucket, steps: Steps) -> Result<(), FinishError> {
        let stock = &self.backends.stock;
        if !steps.confirm.is_empty() {
            stock.confirm(&bucket.item, &steps.confirm).await?;
        }
        if !steps.restore.is_empty() {
            stock.restore(&bucket.item, &steps.restore).await?;
        }
        publish(&self.backends, &self.address, &bucket.item, &steps.publish).await?;
        Ok(())
    }
}
