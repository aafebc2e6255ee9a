//! May this reservation's stock go back? The ledger knows.

use shared::contract::{Compensation, DeadLetter, DecodeError, decode_compensation};
use shared::crash;
use shared::domain::{EnvironmentId, ItemId, Order, Reason, Resolution, resolve};
use shared::ledger::{Expiry, Ledger, LedgerError};
use shared::queue::{Delivery, Outgoing};
use shared::retry::until_done;
use shared::stock::RestoreRequest;
use shared::telemetry::metrics;
use tokio_util::sync::CancellationToken;

pub(crate) struct Judge {
    pub(crate) environment: EnvironmentId,
    pub(crate) ledger: Ledger,
    pub(crate) give_up: CancellationToken,
}

/// What becomes of a compensation.
pub(crate) enum Judgement {
    Restore(ItemId, RestoreRequest),
    Dead(Outgoing),
    /// It belongs to a later release.
    Newer,
}

impl Judge {
    /// Judges one message. `None`: given up half-way, nothing may be acknowledged.
    pub(crate) async fn judge(&self, delivery: &Delivery) -> Option<Judgement> {
        let dead = |reason, error: String| {
            let (source, body) = (delivery.queue.to_string(), delivery.body.clone());
            Some(Judgement::Dead(bury(DeadLetter { reason, error, source, body })))
        };
        let compensation = match decode_compensation(&delivery.body) {
            Ok(compensation) => compensation,
            Err(error @ DecodeError::NewerVersion { .. }) => {
                tracing::warn!(%error, "leaving a message for compensators of a later release");
                return Some(Judgement::Newer);
            }
            Err(error) => return dead("undecodable", error.to_string()),
        };
        if compensation.environment != self.environment {
            let error = format!("it belongs to environment {}", compensation.environment);
            return dead("foreign_environment", error);
        }
        let order = until_done(
            &self.give_up,
            || self.word_of_the_ledger(&compensation),
            |error, pause| tracing::warn!(%error, ?pause, "keeping a compensation until the ledger answers"),
        )
        .await?;
        let Some(order) = order else {
            let error = format!("the ledger has no item {}", compensation.item);
            return dead("unknown_item", error);
        };
        match resolve(compensation.reservation_id, &order) {
            Resolution::Restore(verdict) => Some(Judgement::Restore(
                compensation.item.clone(),
                RestoreRequest {
                    request_id: compensation.request_id,
                    reservation_id: compensation.reservation_id,
                    buyer: compensation.buyer,
                    quantity: compensation.quantity,
                    epoch: compensation.epoch,
                    verdict,
                },
            )),
            Resolution::Refuse => {
                dead("refused", "the ledger has sold exactly this reservation".to_owned())
            }
        }
    }

    /// The order of the request; an undecided request is expired first. `None`: no such item.
    async fn word_of_the_ledger(
        &self,
        compensation: &Compensation,
    ) -> Result<Option<Order>, LedgerError> {
        if let Some(order) = self.ledger.find_order(compensation.request_id).await? {
            return Ok(Some(order));
        }
        let expiry = Expiry {
            request_id: compensation.request_id,
            reservation_id: compensation.reservation_id,
            item: compensation.item.clone(),
            buyer: compensation.buyer.clone(),
            quantity: compensation.quantity,
            epoch: compensation.epoch,
            reason: Reason::COMPENSATED,
        };
        crash::point("compensator.undecided");
        self.ledger.expire(&expiry).await
    }
}

fn bury(letter: DeadLetter) -> Outgoing {
    tracing::error!(
        reason = letter.reason,
        error = letter.error,
        "a compensation goes to the dead letters"
    );
    metrics::buried(letter.reason);
    Outgoing::dead_letter(letter)
}
