//! One batch: decide, then do everything that follows. Every step is repeated until it is done;
//! none is skipped, and all of them may be done twice.

use shared::backends::Backends;
use shared::config::limits::COMMIT_BATCH;
use shared::contract::{
    Compensation, DeadLetter, ReservationsPlaced, encode_compensation, encode_reservations,
};
use shared::domain::{Decision, EnvironmentId, OrderState, Reason, Reservation};
use shared::queue::{Outgoing, Route};
use shared::retry::until_done;
use tokio_util::sync::CancellationToken;

use crate::confirm::confirm_all;

/// Everything that a batch touches.
pub(crate) struct Handler {
    pub(crate) environment: EnvironmentId,
    pub(crate) backends: Backends,
    pub(crate) give_up: CancellationToken,
}

/// What has to follow from the decisions of a batch.
#[derive(Default)]
struct Aftermath {
    winners: Vec<Reservation>,
    outgoing: Vec<Outgoing>,
}

impl Handler {
    /// Decides reservations and does what follows. `None`: given up half-way, nothing may be
    /// acknowledged.
    pub(crate) async fn handle(
        &self,
        reservations: Vec<Reservation>,
        dead: Vec<DeadLetter>,
    ) -> Option<()> {
        let backends = &self.backends;
        let mut decisions = Vec::with_capacity(reservations.len());
        for batch in reservations.chunks(COMMIT_BATCH) {
            let decided = until_done(
                &self.give_up,
                || backends.ledger.commit(batch),
                |error, pause| tracing::warn!(%error, ?pause, "keeping a batch until the ledger takes it"),
            );
            decisions.extend(decided.await?);
        }
        let mut aftermath = self.aftermath(reservations, decisions);
        aftermath.outgoing.extend(dead.into_iter().map(bury));
        confirm_all(&backends.stock, &aftermath.winners, &self.give_up).await?;
        backends.publisher.publish_all(aftermath.outgoing, &self.give_up).await
    }

    fn aftermath(&self, reservations: Vec<Reservation>, decisions: Vec<Decision>) -> Aftermath {
        let mut aftermath = Aftermath::default();
        for (reservation, decision) in reservations.into_iter().zip(decisions) {
            let outgoing = match decision {
                Decision::Ordered(order) => match order.state {
                    OrderState::Confirmed => {
                        aftermath.winners.push(reservation);
                        continue;
                    }
                    OrderState::Rejected(reason) | OrderState::Expired(reason) => {
                        self.compensate(&reservation, reason)
                    }
                },
                Decision::Surplus(_) => self.compensate(&reservation, Reason::SURPLUS),
                Decision::Mismatch(order) => {
                    let error = format!("its request is decided for {order:?}");
                    self.set_aside(reservation, "mismatch", error)
                }
                Decision::UnknownItem => {
                    let error = format!("the ledger has no item {}", reservation.item);
                    self.set_aside(reservation, "unknown_item", error)
                }
            };
            aftermath.outgoing.push(outgoing);
        }
        aftermath
    }

    fn compensate(&self, reservation: &Reservation, reason: Reason) -> Outgoing {
        let compensation = Compensation::of(reservation, self.environment, reason);
        Outgoing {
            route: Route::Compensations,
            headers: Vec::new(),
            body: encode_compensation(&compensation),
        }
    }

    /// A reservation that cannot be decided stands alone in its dead letter, whatever it travelled
    /// with.
    fn set_aside(&self, reservation: Reservation, reason: &'static str, error: String) -> Outgoing {
        let source = "orders".to_owned();
        let placed =
            ReservationsPlaced { environment: self.environment, reservations: vec![reservation] };
        bury(DeadLetter { reason, error, source, body: encode_reservations(&placed) })
    }
}

fn bury(letter: DeadLetter) -> Outgoing {
    tracing::error!(
        reason = letter.reason,
        error = letter.error,
        source = letter.source,
        "a message goes to the dead letters"
    );
    Outgoing::dead_letter(letter)
}
