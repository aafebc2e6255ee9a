//! One purchase: reserve, then publish, then answer. It goes on when its client hangs up.

use std::time::SystemTime;

use shared::crash;
use shared::domain::{
    BuyerId, EnvironmentId, IdempotencyKey, ItemId, OrderState, Quantity, RequestId, Reservation,
    ReservationId, UnixMillis, Window,
};
use shared::queue::PublishOutcome;
use shared::stock::{Refusal, ReserveReply, ReserveRequest};

use crate::catalog::{Catalog, Entry};
use crate::publishing::Publishing;
use crate::reserving::{NoReply, Reserving};

/// What a buyer asks for.
#[derive(Debug, Clone)]
pub(crate) struct Purchase {
    pub(crate) item: ItemId,
    pub(crate) buyer: BuyerId,
    pub(crate) key: IdempotencyKey,
    pub(crate) quantity: Quantity,
}

/// What a buyer is told.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Stock is held and the broker has the message.
    Accepted {
        reservation: Reservation,
        replayed: bool,
    },
    /// The request was decided before.
    Decided {
        request_id: RequestId,
        quantity: Quantity,
        state: OrderState,
    },
    UnknownItem,
    Refused(Refusal),
    /// Try the same key again.
    Unavailable(Unavailable),
}

/// Why there is no answer yet.
#[derive(Debug, Clone)]
pub(crate) enum Unavailable {
    /// The catalog could not be read since this process started.
    Catalog,
    /// Redis cannot be asked; nothing was taken.
    Redis,
    /// Redis has restarted or failed over, and has not been compared with the ledger yet.
    NotCompared,
    /// RabbitMQ takes nothing right now.
    Broker,
    /// This backend did not answer. Stock may be held; the same key finds out.
    NoAnswer(&'static str),
    Overloaded,
}

/// Everything that a purchase needs. The ledger is not among it.
pub(crate) struct Purchases {
    pub(crate) catalog: Catalog,
    pub(crate) reserving: Reserving,
    pub(crate) publishing: Publishing,
}

impl Purchases {
    pub(crate) async fn buy(&self, purchase: Purchase) -> Answer {
        let (environment, window) = match self.catalog.find(&purchase.item) {
            Entry::Item { environment, item } => (environment, item.sale.window),
            Entry::Unknown => return Answer::UnknownItem,
            Entry::NotRead => return Answer::Unavailable(Unavailable::Catalog),
        };
        // Before stock is taken: what cannot be published now is not reserved now.
        if self.publishing.trouble().is_some() {
            return Answer::Unavailable(Unavailable::Broker);
        }
        let Purchase { item, buyer, key, quantity } = purchase;
        let request = ReserveRequest {
            request_id: RequestId::derive(&buyer, &item, &key),
            reservation_id: ReservationId::mint(),
            buyer,
            quantity,
        };
        crash::point("ingress.asked");
        let reserved = self.reserving.reserve(&item, request).await;
        crash::point("ingress.reserved");
        match reserved {
            Ok(ReserveReply::Held(reservation)) => {
                self.publish(environment, reservation, false).await
            }
            Ok(ReserveReply::Repeat { reservation, standing }) => match standing.decided() {
                Some(state) => Answer::Decided {
                    request_id: reservation.request_id,
                    quantity: reservation.quantity,
                    state,
                },
                // Its message may never have been sent: it is published again, under the stored
                // reservation id.
                None => self.publish(environment, reservation, true).await,
            },
            Ok(ReserveReply::Refused(Refusal::NotWarm)) => Answer::Refused(outside(window)),
            Ok(ReserveReply::Refused(refusal)) => Answer::Refused(refusal),
            Err(NoReply::NotTaken) => Answer::Unavailable(Unavailable::Redis),
            Err(NoReply::NotReady) => Answer::Unavailable(Unavailable::NotCompared),
            Err(NoReply::Unknown) => Answer::Unavailable(Unavailable::NoAnswer("Redis")),
            Err(NoReply::Overloaded) => Answer::Unavailable(Unavailable::Overloaded),
        }
    }

    /// Publishes and waits for the broker's word. Whatever it is, the hold stays.
    async fn publish(
        &self,
        environment: EnvironmentId,
        reservation: Reservation,
        replayed: bool,
    ) -> Answer {
        let request_id = reservation.request_id;
        let outcome = self.publishing.publish(environment, reservation.clone()).await;
        crash::point("ingress.published");
        let unavailable = match outcome {
            PublishOutcome::Confirmed => return Answer::Accepted { reservation, replayed },
            PublishOutcome::NotSent(reason) => {
                tracing::debug!(%request_id, reason, "held, not published; a repeat publishes it");
                Unavailable::Broker
            }
            outcome @ (PublishOutcome::Unknown(_) | PublishOutcome::Unroutable) => {
                tracing::warn!(%request_id, ?outcome, "held, perhaps published; a repeat finds out");
                Unavailable::NoAnswer("RabbitMQ")
            }
        };
        Answer::Unavailable(unavailable)
    }
}

/// An item that is not in Redis cannot judge its window there; the catalog tells those who are far
/// too early or too late, by the clock of this process.
fn outside(window: Window) -> Refusal {
    let now = UnixMillis::from(SystemTime::now());
    if now < window.opens_at() {
        Refusal::NotOpen
    } else if now >= window.closes_at() {
        Refusal::Ended
    } else {
        Refusal::NotWarm
    }
}
