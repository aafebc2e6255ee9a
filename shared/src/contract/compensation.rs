//! `compensations.restore.v1`: give one reservation's stock back.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::decode::{DecodeError, Typed, decode, invalid};
use crate::domain::{
    BuyerId, EnvironmentId, ItemId, Quantity, Reason, RequestId, Reservation, ReservationId,
};

const TYPE: &str = "compensations.restore.v1";

/// A request to restore a reservation. The units that go back are always the hold's own; the
/// quantity here only informs people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensation {
    pub environment: EnvironmentId,
    pub item: ItemId,
    pub epoch: u64,
    pub buyer: BuyerId,
    pub request_id: RequestId,
    pub reservation_id: ReservationId,
    pub quantity: Quantity,
    pub reason: Reason,
}

#[derive(Serialize, Deserialize)]
struct Body {
    r#type: String,
    environment: Uuid,
    item: String,
    epoch: u64,
    buyer: String,
    request_id: Uuid,
    reservation_id: Uuid,
    quantity: u64,
    reason: String,
}

impl Typed for Body {
    fn found(&self) -> &str {
        &self.r#type
    }
}

impl Compensation {
    /// The compensation of a reservation that its ledger did not sell.
    pub fn of(reservation: &Reservation, environment: EnvironmentId, reason: Reason) -> Self {
        Self {
            environment,
            item: reservation.item.clone(),
            epoch: reservation.epoch,
            buyer: reservation.buyer.clone(),
            request_id: reservation.request_id,
            reservation_id: reservation.reservation_id,
            quantity: reservation.quantity,
            reason,
        }
    }
}

/// Writes the body of a message.
pub fn encode_compensation(compensation: &Compensation) -> Vec<u8> {
    let body = Body {
        r#type: TYPE.to_owned(),
        environment: compensation.environment.as_uuid(),
        item: compensation.item.to_string(),
        epoch: compensation.epoch,
        buyer: compensation.buyer.to_string(),
        request_id: compensation.request_id.as_uuid(),
        reservation_id: compensation.reservation_id.as_uuid(),
        quantity: compensation.quantity.units(),
        reason: compensation.reason.to_string(),
    };
    serde_json::to_vec(&body).expect("strings and numbers always serialise")
}

/// Reads the body of a message.
pub fn decode_compensation(body: &[u8]) -> Result<Compensation, DecodeError> {
    let body: Body = decode(TYPE, body)?;
    Ok(Compensation {
        environment: EnvironmentId::from_uuid(body.environment),
        item: body.item.parse().map_err(|error| invalid(TYPE, error))?,
        epoch: body.epoch,
        buyer: body.buyer.parse().map_err(|error| invalid(TYPE, error))?,
        request_id: RequestId::from_uuid(body.request_id),
        reservation_id: ReservationId::from_uuid(body.reservation_id),
        quantity: Quantity::new(body.quantity).map_err(|error| invalid(TYPE, error))?,
        reason: body.reason.parse().map_err(|error| invalid(TYPE, error))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compensation_reads_back_as_it_was_written() {
        let buyer = "ann".parse().expect("a buyer");
        let item = "shoe".parse().expect("an item");
        let compensation = Compensation {
            environment: EnvironmentId::from_uuid(Uuid::nil()),
            request_id: RequestId::derive(&buyer, &item, &"1".parse().expect("a key")),
            item,
            epoch: 1,
            buyer,
            reservation_id: ReservationId::mint(),
            quantity: Quantity::new(2).expect("two"),
            reason: Reason::SOLD_OUT,
        };
        let read = decode_compensation(&encode_compensation(&compensation));
        assert_eq!(read.expect("a message"), compensation);
    }
}
