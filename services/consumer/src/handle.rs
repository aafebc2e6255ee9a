//! One batch: decide, then everything that follows. Every step may be done twice.

use shared::backends::Backends;
use shared::config::limits::{COMMIT_BATCH, PARKED_IN_A_ROW, SETTLE_DEADLINE};
use shared::contract::{
    Compensation, DeadLetter, ReservationsPlaced, encode_compensation, encode_reservations,
};
use shared::crash;
use shared::domain::{Decision, EnvironmentId, OrderState, Reason, Reservation};
use shared::queue::{Outgoing, Route};
use shared::telemetry::metrics;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::confirm::confirm_all;
use crate::decide::{Fate, decide_all};

/// Everything that a batch touches.
pub(crate) struct Handler {
    pub(crate) environment: EnvironmentId,
    pub(crate) backends: Backends,
    pub(crate) give_up: CancellationToken,
    /// Reservations that were set aside since one was decided.
    pub(crate) parked_in_a_row: u32,
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handled {
    /// Nothing is left to do: it may be acknowledged.
    Done,
    /// So many reservations in a row were set aside that not they can be wrong.
    Suspicious,
    /// Stopped half-way: nothing may be acknowledged.
    GivenUp,
}

/// What has to follow from the fates of a batch.
#[derive(Default)]
struct Aftermath {
    winners: Vec<Reservation>,
    compensations: Vec<Outgoing>,
    letters: Vec<DeadLetter>,
}

impl Handler {
    /// Decides reservations and does what follows.
    pub(crate) async fn handle(
        &mut self,
        reservations: Vec<Reservation>,
        unreadable: Vec<DeadLetter>,
    ) -> Handled {
        let mut aftermath = Aftermath { letters: unreadable, ..Aftermath::default() };
        for batch in reservations.chunks(COMMIT_BATCH) {
            let fates = decide_all(&self.backends.ledger, batch, &self.give_up).await;
            let Some(fates) = fates else { return Handled::GivenUp };
            for (reservation, fate) in batch.iter().zip(fates) {
                self.follow(reservation, fate, &mut aftermath);
            }
        }
        crash::point("consumer.committed");
        if self.settle(aftermath.winners, aftermath.compensations).await.is_none() {
            return Handled::GivenUp;
        }
        // A letter has no other record: it waits for its confirm, however long that takes.
        let letters = aftermath.letters.into_iter().map(bury).collect();
        if self.backends.publisher.publish_all(letters, &self.give_up).await.is_none() {
            return Handled::GivenUp;
        }
        if self.parked_in_a_row >= PARKED_IN_A_ROW { Handled::Suspicious } else { Handled::Done }
    }

    /// Winners and compensations have the ledger's decision and the hold as their record: when Redis
    /// or the broker is away, the reconciler finishes them. `None`: given up half-way; whoever gets
    /// the deliveries next is sooner there than the reconciler.
    async fn settle(&self, winners: Vec<Reservation>, compensations: Vec<Outgoing>) -> Option<()> {
        let Backends { stock, publisher, .. } = &self.backends;
        let confirmed = timeout(SETTLE_DEADLINE, confirm_all(stock, &winners, &self.give_up));
        let published =
            timeout(SETTLE_DEADLINE, publisher.publish_all(compensations, &self.give_up));
        let confirmed = confirmed.await;
        crash::point("consumer.confirmed");
        let published = published.await;
        crash::point("consumer.compensated");
        if confirmed.is_err() {
            tracing::warn!("Redis did not hear of all winners; the reconciler tells it");
        }
        if published.is_err() {
            tracing::warn!("RabbitMQ did not take all compensations; the reconciler restores");
        }
        let given_up = confirmed == Ok(None) || published == Ok(None);
        (!given_up).then_some(())
    }

    fn follow(&mut self, reservation: &Reservation, fate: Fate, aftermath: &mut Aftermath) {
        let (reason, error) = match fate {
            Fate::Decided(Decision::Ordered(order)) => {
                self.parked_in_a_row = 0;
                metrics::decided(order.state.name(), reservation.quantity);
                return match order.state {
                    OrderState::Confirmed => aftermath.winners.push(reservation.clone()),
                    OrderState::Rejected(reason) | OrderState::Expired(reason) => {
                        aftermath.compensations.push(self.compensate(reservation, reason));
                    }
                };
            }
            Fate::Decided(Decision::Surplus(_)) => {
                self.parked_in_a_row = 0;
                metrics::decided("surplus", reservation.quantity);
                return aftermath.compensations.push(self.compensate(reservation, Reason::SURPLUS));
            }
            Fate::Decided(Decision::Mismatch(order)) => {
                ("mismatch", format!("its request is decided for {order:?}"))
            }
            Fate::Decided(Decision::UnknownItem) => {
                ("unknown_item", format!("the ledger has no item {}", reservation.item))
            }
            Fate::Hopeless(error) => ("hopeless", error),
        };
        self.parked_in_a_row += 1;
        metrics::decided("parked", reservation.quantity);
        aftermath.letters.push(self.alone(reservation, reason, error));
    }

    fn compensate(&self, reservation: &Reservation, reason: Reason) -> Outgoing {
        let compensation = Compensation::of(reservation, self.environment, reason);
        Outgoing {
            route: Route::Compensations,
            headers: Vec::new(),
            body: encode_compensation(&compensation),
        }
    }

    /// A reservation that cannot be decided stands alone in its letter, whatever it travelled with.
    fn alone(&self, reservation: &Reservation, reason: &'static str, error: String) -> DeadLetter {
        let placed = ReservationsPlaced {
            environment: self.environment,
            reservations: vec![reservation.clone()],
        };
        let source = "orders".to_owned();
        DeadLetter { reason, error, source, body: encode_reservations(&placed) }
    }
}

fn bury(letter: DeadLetter) -> Outgoing {
    let DeadLetter { reason, error, source, .. } = &letter;
    tracing::error!(reason, error, source, "a message goes to the dead letters");
    metrics::buried(reason);
    Outgoing::dead_letter(letter)
}
