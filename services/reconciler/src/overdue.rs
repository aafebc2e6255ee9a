//! Holds that nobody has finished in time: the ledger is asked, and what it says is done. A hold is
//! handed to one reconciler at a time; its next look is put off in the same step.

use std::collections::HashMap;

use futures_util::stream::{self, TryStreamExt};
use shared::backends::Backends;
use shared::config::Config;
use shared::config::limits::{BUCKETS_PER_ITEM, PUBLISH_BATCH};
use shared::contract::ReservationsPlaced;
use shared::crash;
use shared::domain::{
    EnvironmentId, OverdueStep, Reservation, ReservationId, Whereabouts, finish_overdue, partition,
};
use shared::ledger::{LedgerError, WarmedItem};
use shared::queue::{Outgoing, PublishOutcome, QueueError, ready_messages};
use shared::stock::{Bucket, Overdue, RestoreRequest, StockError};

/// Items that are looked at side by side.
const ITEMS_AT_ONCE: usize = 8;

/// Why a round could not be finished. What was claimed comes up again at its next look.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoundError {
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("cannot publish an overdue reservation again: {0:?}")]
    Publish(PublishOutcome),
}

/// Finishes overdue holds.
pub(crate) struct Finisher {
    config: Config,
    backends: Backends,
    environment: EnvironmentId,
}

/// What has to be done for the overdue holds of one bucket.
#[derive(Default)]
struct Steps {
    confirm: Vec<Reservation>,
    restore: Vec<RestoreRequest>,
    publish: Vec<Reservation>,
}

impl Finisher {
    pub(crate) fn new(config: &Config, backends: Backends, environment: EnvironmentId) -> Self {
        Self { config: config.clone(), backends, environment }
    }

    /// Looks at every bucket of every warmed item once.
    pub(crate) async fn go_round(&self) -> Result<(), RoundError> {
        let items = self.backends.ledger.warmed_items().await?;
        stream::iter(items.into_iter().map(Ok))
            .try_for_each_concurrent(ITEMS_AT_ONCE, |item| async move {
                for number in 0..BUCKETS_PER_ITEM {
                    let bucket = Bucket { item: item.item.clone(), number };
                    self.finish_bucket(&item, &bucket).await?;
                }
                Ok(())
            })
            .await
    }

    async fn finish_bucket(&self, item: &WarmedItem, bucket: &Bucket) -> Result<(), RoundError> {
        loop {
            let overdue = self.backends.stock.claim_overdue(bucket).await?;
            if overdue.is_empty() {
                return Ok(());
            }
            crash::point("reconciler.claimed");
            let steps = self.steps(item, overdue).await?;
            self.take(bucket, steps).await?;
            crash::point("reconciler.finished");
        }
    }

    async fn steps(&self, item: &WarmedItem, overdue: Vec<Overdue>) -> Result<Steps, RoundError> {
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
            tracing::info!(%request_id, item = %item.item, tries, ?step, "an overdue hold");
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
        item: &WarmedItem,
        undecided: &[Reservation],
    ) -> Result<HashMap<ReservationId, Whereabouts>, RoundError> {
        if undecided.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<_> = undecided.iter().map(|one| one.reservation_id).collect();
        let parked = self.backends.ledger.parked(&ids).await?;
        let ready = ready_messages(&self.config.rabbitmq, &self.config.namespace).await?;
        let partition = partition(&item.item, self.config.rabbitmq.partitions);
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

    async fn take(&self, bucket: &Bucket, steps: Steps) -> Result<(), RoundError> {
        let Backends { stock, publisher, .. } = &self.backends;
        if !steps.confirm.is_empty() {
            stock.confirm(bucket, &steps.confirm).await?;
        }
        if !steps.restore.is_empty() {
            stock.restore(bucket, &steps.restore).await?;
        }
        let partition = partition(&bucket.item, self.config.rabbitmq.partitions);
        for reservations in steps.publish.chunks(PUBLISH_BATCH) {
            let reservations = reservations.to_vec();
            let placed = ReservationsPlaced { environment: self.environment, reservations };
            match publisher.publish(Outgoing::reservations(partition, &placed)).await {
                PublishOutcome::Confirmed => {}
                outcome => return Err(RoundError::Publish(outcome)),
            }
        }
        Ok(())
    }
}
