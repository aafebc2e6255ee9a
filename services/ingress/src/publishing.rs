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
use tokio::sync::oneshot;

/// Publishes reservations, message by message.
pub(crate) struct Publishing {
    publisher: Publisher,
    partitions: u16,
    batcher: Batcher<(EnvironmentId, u16), Reservation, PublishOutcome>,
    /// Publishes under way: a repeat of the request waits for the same confirm.
    under_way: Mutex<HashMap<ReservationId, Joined>>,
}

/// Those who wait for a publish that is not theirs.
type Joined = Vec<oneshot::Sender<PublishOutcome>>;

/// Who publishes a reservation.
enum Begun<'a> {
    Mine(UnderWay<'a>),
    Already(oneshot::Receiver<PublishOutcome>),
}

/// A publish. When it ends, those who joined it hear of it; the next one is another.
struct UnderWay<'a> {
    publishing: &'a Publishing,
    id: ReservationId,
    /// `None` if it ends half-way.
    outcome: Option<PublishOutcome>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let joined = self.publishing.under_way().remove(&self.id).unwrap_or_default();
        let Some(outcome) = &self.outcome else { return };
        for one in joined {
            // Whoever stopped waiting does not need it.
            let _ = one.send(outcome.clone());
        }
    }
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
        let mut under_way = match self.begin(id) {
            Begun::Mine(under_way) => under_way,
            Begun::Already(outcome) => {
                return outcome.await.unwrap_or_else(|_| {
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
        under_way.outcome = Some(outcome.clone());
        outcome
    }

    fn begin(&self, id: ReservationId) -> Begun<'_> {
        match self.under_way().entry(id) {
            Entry::Occupied(mut publish) => {
                let (joined, outcome) = oneshot::channel();
                publish.get_mut().push(joined);
                Begun::Already(outcome)
            }
            Entry::Vacant(publish) => {
                publish.insert(Joined::new());
                Begun::Mine(UnderWay { publishing: self, id, outcome: None })
            }
        }
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<ReservationId, Joined>> {
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
