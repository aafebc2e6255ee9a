//! The ledger's stage: one batch after the other is decided, and what has to follow is handed on.
//!
//! One at a time: batches of a hot item would only wait for each other's row lock. What comes
//! meanwhile, and until the pace of a busy consumer allows the next, is the next batch.

use std::sync::Arc;

use shared::config::limits::{COMMIT_BATCH, COMMIT_PACE, PARKED_IN_A_ROW, PUBLISH_BATCH};
use shared::contract::{
    Compensation, DeadLetter, ReservationsPlaced, encode_compensation, encode_reservations,
};
use shared::crash;
use shared::domain::{Decision, EnvironmentId, OrderState, Reason, Reservation};
use shared::ledger::Ledger;
use shared::queue::{Delivery, Outgoing, Route};
use shared::telemetry::metrics;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::decide::{Fate, decide_all};
use crate::intake::Taken;

/// Decides what was taken, in the order in which it came.
pub(crate) struct Committer {
    pub(crate) environment: EnvironmentId,
    pub(crate) ledger: Ledger,
    pub(crate) give_up: CancellationToken,
    /// Reservations that were set aside since one was decided.
    pub(crate) parked_in_a_row: u32,
}

/// What has to follow from the fates of a batch, and the deliveries that are finished then.
#[derive(Default)]
pub(crate) struct Committed {
    pub(crate) winners: Vec<Reservation>,
    pub(crate) compensations: Vec<Outgoing>,
    pub(crate) letters: Vec<DeadLetter>,
    pub(crate) deliveries: Vec<Delivery>,
}

/// Why no more is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything that was taken is decided, or others will be asked to.
    Stopped,
    /// So many reservations in a row were set aside that not they can be wrong.
    Suspicious,
}

impl Committer {
    /// Goes on until nothing more is taken, or nobody is left to settle what is decided.
    pub(crate) async fn run(
        mut self,
        mut taken: mpsc::Receiver<Taken>,
        committed: mpsc::Sender<Committed>,
    ) -> End {
        let mut next_at = Instant::now();
        while let Some(batch) = gather(&mut taken, next_at).await {
            next_at = Instant::now() + COMMIT_PACE;
            let Some(decided) = self.commit(batch).await else { break };
            crash::point("consumer.committed");
            if committed.send(decided).await.is_err() {
                break;
            }
            if self.parked_in_a_row >= PARKED_IN_A_ROW {
                return End::Suspicious;
            }
        }
        End::Stopped
    }

    /// `None`: given up half-way.
    async fn commit(&mut self, batch: Vec<Taken>) -> Option<Committed> {
        let (mut committed, mut reservations) = (Committed::default(), Vec::new());
        for one in batch {
            reservations.extend(one.reservations);
            committed.letters.extend(one.letter);
            committed.deliveries.push(one.delivery);
        }
        let reservations = Arc::new(reservations);
        let fates = decide_all(&self.ledger, &reservations, &self.give_up).await?;
        for (reservation, fate) in Arc::unwrap_or_clone(reservations).into_iter().zip(fates) {
            self.follow(reservation, fate, &mut committed);
        }
        Some(committed)
    }

    fn follow(&mut self, reservation: Reservation, fate: Fate, committed: &mut Committed) {
        let (reason, error) = match fate {
            Fate::Decided(Decision::Ordered(order)) => {
                self.parked_in_a_row = 0;
                metrics::decided(order.state.name(), reservation.quantity);
                return match order.state {
                    OrderState::Confirmed => committed.winners.push(reservation),
                    OrderState::Rejected(reason) | OrderState::Expired(reason) => {
                        committed.compensations.push(self.compensate(&reservation, reason));
                    }
                };
            }
            Fate::Decided(Decision::Surplus(_)) => {
                self.parked_in_a_row = 0;
                metrics::decided("surplus", reservation.quantity);
                let compensation = self.compensate(&reservation, Reason::SURPLUS);
                return committed.compensations.push(compensation);
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
        committed.letters.push(self.alone(reservation, reason, error));
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
    fn alone(&self, reservation: Reservation, reason: &'static str, error: String) -> DeadLetter {
        let placed =
            ReservationsPlaced { environment: self.environment, reservations: vec![reservation] };
        let source = "orders".to_owned();
        DeadLetter { reason, error, source, body: encode_reservations(&placed) }
    }
}

/// Waits for a message, then takes what else comes until the next transaction is due, as far as one has
/// room. After a pause it is due at once. `None`: nothing comes any more.
async fn gather(taken: &mut mpsc::Receiver<Taken>, due_at: Instant) -> Option<Vec<Taken>> {
    let first = taken.recv().await?;
    let mut reservations = first.reservations.len();
    let mut batch = vec![first];
    while reservations + PUBLISH_BATCH <= COMMIT_BATCH {
        // What is there is taken even when it is due.
        let Ok(Some(next)) = timeout_at(due_at, taken.recv()).await else { break };
        reservations += next.reservations.len();
        batch.push(next);
    }
    Some(batch)
}
