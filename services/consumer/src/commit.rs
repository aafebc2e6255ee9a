//! The ledger's stage: batch by batch is decided, and what has to follow is handed on in their order.
//!
//! While one transaction writes, the next one is on its way: batches of a hot item then wait for each
//! other's row lock in the ledger, and not for what lies between two transactions. What comes until
//! the pace of a busy consumer allows the next is its batch.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use shared::config::limits::{
    COMMIT_BATCH, COMMIT_PACE, COMMITS_AT_ONCE, PARKED_IN_A_ROW, PUBLISH_BATCH,
};
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

/// A batch whose fates are known, and what has to follow from its unreadable messages.
struct DecidedBatch {
    reservations: Arc<Vec<Reservation>>,
    fates: Vec<Fate>,
    committed: Committed,
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
        let mut gathering =
            Gathering { batch: Vec::new(), reservations: 0, due_at: Instant::now() };
        let mut under_way = FuturesOrdered::new();
        let mut is_open = true;
        while is_open || !under_way.is_empty() {
            let has_room = is_open && under_way.len() < COMMITS_AT_ONCE;
            let decided = tokio::select! {
                gathered = gathering.fill(&mut taken), if has_room => {
                    match gathered {
                        Some(()) => under_way.push_back(self.decide(gathering.next())),
                        None => is_open = false,
                    }
                    continue;
                }
                Some(decided) = under_way.next() => decided,
            };
            let Some(decided) = decided else { break };
            let followed = self.follow_all(decided);
            crash::point("consumer.committed");
            if committed.send(followed).await.is_err() {
                break;
            }
            if self.parked_in_a_row >= PARKED_IN_A_ROW {
                return End::Suspicious;
            }
        }
        End::Stopped
    }

    /// `None`: given up half-way. May be dropped: transactions run to their end in tasks of their own.
    fn decide(&self, batch: Vec<Taken>) -> impl Future<Output = Option<DecidedBatch>> + use<> {
        let (ledger, give_up) = (self.ledger.clone(), self.give_up.clone());
        async move {
            let (mut committed, mut reservations) = (Committed::default(), Vec::new());
            for one in batch {
                reservations.extend(one.reservations);
                committed.letters.extend(one.letter);
                committed.deliveries.push(one.delivery);
            }
            let reservations = Arc::new(reservations);
            let fates = decide_all(&ledger, &reservations, &give_up).await?;
            Some(DecidedBatch { reservations, fates, committed })
        }
    }

    fn follow_all(&mut self, decided: DecidedBatch) -> Committed {
        let DecidedBatch { reservations, fates, mut committed } = decided;
        for (reservation, fate) in Arc::unwrap_or_clone(reservations).into_iter().zip(fates) {
            self.follow(reservation, fate, &mut committed);
        }
        committed
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

/// What the next transaction will decide. It stays when whoever fills it does something else meanwhile.
struct Gathering {
    batch: Vec<Taken>,
    /// In the whole batch.
    reservations: usize,
    /// When the next transaction may begin; after a pause it may at once.
    due_at: Instant,
}

impl Gathering {
    /// Waits for a message, then takes what else comes until the transaction is due, as far as it has
    /// room. `None`: nothing comes any more.
    async fn fill(&mut self, taken: &mut mpsc::Receiver<Taken>) -> Option<()> {
        if self.batch.is_empty() {
            let first = taken.recv().await?;
            self.add(first);
        }
        while self.reservations + PUBLISH_BATCH <= COMMIT_BATCH {
            // What is there is taken even when it is due.
            let Ok(Some(next)) = timeout_at(self.due_at, taken.recv()).await else { break };
            self.add(next);
        }
        Some(())
    }

    fn add(&mut self, one: Taken) {
        self.reservations += one.reservations.len();
        self.batch.push(one);
    }

    /// The batch, whose transaction begins now.
    fn next(&mut self) -> Vec<Taken> {
        self.due_at = Instant::now() + COMMIT_PACE;
        self.reservations = 0;
        std::mem::take(&mut self.batch)
    }
}
