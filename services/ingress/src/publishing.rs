//! Reservations of one partition gather into messages that are sent together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use shared::batch::{Batcher, NotHandled};
use shared::config::limits::{PUBLISH_BATCH, PUBLISH_TURN, PURCHASES_WAITING};
use shared::contract::ReservationsPlaced;
use shared::domain::{EnvironmentId, Reservation, ReservationId, partition};
use shared::queue::{Outgoing, PublishOutcome, Publisher};
use tokio::sync::watch;

/// Publishes reservations, message by message.
pub(crate) struct Publishing {
    publisher: Publisher,
    partitions: u16,
    batcher: Batcher<(EnvironmentId, u16), Reservation, PublishOutcome>,
    /// Publishes under way: a repeat of the request waits for the same confirm.
    under_way: Mutex<HashMap<ReservationId, Awaited>>,
}

/// The outcome of a publish, once it is there.
type Awaited = watch::Receiver<Option<PublishOutcome>>;

/// Who publishes a reservation.
enum Begun {
    Mine(watch::Sender<Option<PublishOutcome>>),
    Already(Awaited),
}

impl Publishing {
    pub(crate) fn new(publisher: Publisher, partitions: u16) -> Self {
        let inner = publisher.clone();
        let batcher = Batcher::new(
            PUBLISH_TURN,
            PURCHASES_WAITING,
            move |(environment, partition), reservations| {
                let publisher = inner.clone();
                async move { publish(&publisher, environment, partition, reservations).await }
            },
        );
        Self { publisher, partitions, batcher, under_way: Mutex::default() }
    }

    /// Why nothing can be published right now, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.publisher.trouble()
    }

    /// Publishes a reservation, or joins its publish that is under way.
    pub(crate) async fn publish(
        &self,
        environment: EnvironmentId,
        reservation: Reservation,
    ) -> PublishOutcome {
        let id = reservation.reservation_id;
        let done = match self.begin(id) {
            Begun::Mine(done) => done,
            Begun::Already(mut joined) => {
                let outcome = joined.wait_for(Option::is_some).await;
                return outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| {
                    PublishOutcome::Unknown("the publish that this one joined ended".to_owned())
                });
            }
        };
        let lane = (environment, partition(&reservation.item, self.partitions));
        let outcome = self.batcher.submit(lane, reservation).await;
        let outcome = outcome.unwrap_or_else(|not_handled| match not_handled {
            NotHandled::Full => PublishOutcome::NotSent(not_handled.to_string()),
            NotHandled::Abandoned => PublishOutcome::Unknown(not_handled.to_string()),
        });
        self.under_way().remove(&id);
        done.send_replace(Some(outcome.clone()));
        outcome
    }

    fn begin(&self, id: ReservationId) -> Begun {
        match self.under_way().entry(id) {
            Entry::Occupied(publish) => Begun::Already(publish.get().clone()),
            Entry::Vacant(publish) => {
                let (done, outcome) = watch::channel(None);
                publish.insert(outcome);
                Begun::Mine(done)
            }
        }
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<ReservationId, Awaited>> {
        // No code that can panic runs under this lock.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn publish(
    publisher: &Publisher,
    environment: EnvironmentId,
    partition: u16,
    reservations: Vec<Reservation>,
) -> Vec<PublishOutcome> {
    let message = |part: &[Reservation]| {
        let placed = ReservationsPlaced { environment, reservations: part.to_vec() };
        (Outgoing::reservations(partition, &placed), part.len())
    };
    // All are written before the first is handed over, so that one window takes them.
    let messages: Vec<_> = reservations.chunks(PUBLISH_BATCH).map(message).collect();
    let published = messages.into_iter().map(|(message, count)| async move {
        std::iter::repeat_n(publisher.publish(message).await, count)
    });
    join_all(published).await.into_iter().flatten().collect()
}
