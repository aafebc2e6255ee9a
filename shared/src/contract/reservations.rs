//! `reservations.placed.v1`: reservations of one partition that gathered while the previous
//! publish was on its way.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::decode::{DecodeError, Typed, decode, invalid};
use crate::domain::{EnvironmentId, Quantity, RequestId, Reservation, ReservationId, UnixMillis};

const TYPE: &str = "reservations.placed.v1";

/// Reservations to decide, from the environment that took their stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationsPlaced {
    pub environment: EnvironmentId,
    pub reservations: Vec<Reservation>,
}

/// Texts are lent by the body or the reservation: a consumer reads tens of thousands a second.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    environment: Uuid,
    reservations: Vec<Line<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    request_id: Uuid,
    reservation_id: Uuid,
    #[serde(borrow)]
    item: Cow<'a, str>,
    epoch: u64,
    #[serde(borrow)]
    buyer: Cow<'a, str>,
    quantity: u64,
    reserved_at_ms: u64,
}

impl Typed for Body<'_> {
    fn found(&self) -> &str {
        &self.r#type
    }
}

/// Writes the body of a message.
pub fn encode_reservations(placed: &ReservationsPlaced) -> Vec<u8> {
    let body = Body {
        r#type: TYPE.into(),
        environment: placed.environment.as_uuid(),
        reservations: placed.reservations.iter().map(line).collect(),
    };
    serde_json::to_vec(&body).expect("strings and numbers always serialise")
}

fn line(reservation: &Reservation) -> Line<'_> {
    Line {
        request_id: reservation.request_id.as_uuid(),
        reservation_id: reservation.reservation_id.as_uuid(),
        item: reservation.item.as_str().into(),
        epoch: reservation.epoch,
        buyer: reservation.buyer.as_str().into(),
        quantity: reservation.quantity.units(),
        reserved_at_ms: reservation.reserved_at.0,
    }
}

/// Reads the body of a message.
pub fn decode_reservations(body: &[u8]) -> Result<ReservationsPlaced, DecodeError> {
    let body: Body<'_> = decode(TYPE, body)?;
    let environment = EnvironmentId::from_uuid(body.environment);
    let reservations = body.reservations.into_iter().map(reservation).collect::<Result<_, _>>()?;
    Ok(ReservationsPlaced { environment, reservations })
}

fn reservation(line: Line<'_>) -> Result<Reservation, DecodeError> {
    Ok(Reservation {
        request_id: RequestId::from_uuid(line.request_id),
        reservation_id: ReservationId::from_uuid(line.reservation_id),
        item: line.item.parse().map_err(|error| invalid(TYPE, error))?,
        epoch: line.epoch,
        buyer: line.buyer.parse().map_err(|error| invalid(TYPE, error))?,
        quantity: Quantity::new(line.quantity).map_err(|error| invalid(TYPE, error))?,
        reserved_at: UnixMillis(line.reserved_at_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed() -> ReservationsPlaced {
        let buyer = "ann".parse().expect("a buyer");
        let item = "shoe".parse().expect("an item");
        let reservation = Reservation {
            request_id: RequestId::derive(&buyer, &item, &"1".parse().expect("a key")),
            reservation_id: ReservationId::mint(),
            item,
            epoch: 3,
            buyer,
            quantity: Quantity::new(2).expect("two"),
            reserved_at: UnixMillis(1_800_000_000_123),
        };
        let environment = EnvironmentId::from_uuid(Uuid::nil());
        ReservationsPlaced { environment, reservations: vec![reservation] }
    }

    fn edited(
        edit: impl FnOnce(&mut serde_json::Value),
    ) -> Result<ReservationsPlaced, DecodeError> {
        let body = encode_reservations(&placed());
        let mut body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        edit(&mut body);
        decode_reservations(body.to_string().as_bytes())
    }

    #[test]
    fn a_message_reads_back_as_it_was_written() {
        let placed = placed();
        let read = decode_reservations(&encode_reservations(&placed)).expect("a message");
        assert_eq!(read, placed);
    }

    #[test]
    fn fields_of_a_later_minor_change_are_ignored() {
        assert!(edited(|body| body["traceparent"] = "00-1-2-00".into()).is_ok());
    }

    #[test]
    fn a_newer_version_is_told_from_nonsense() {
        let newer = edited(|body| body["type"] = "reservations.placed.v2".into());
        assert!(matches!(newer, Err(DecodeError::NewerVersion { .. })));
        let other = edited(|body| body["type"] = "x".into());
        assert!(matches!(other, Err(DecodeError::Undecodable { .. })));
        let undecodable = decode_reservations(b"\xff\x00");
        assert!(matches!(undecodable, Err(DecodeError::Undecodable { .. })));
    }

    #[test]
    fn a_line_that_breaks_a_rule_is_undecodable() {
        for (field, value) in [
            ("item", serde_json::json!("a b")),
            ("buyer", serde_json::json!("a\0")),
            ("quantity", serde_json::json!(0)),
            ("quantity", serde_json::json!(-1)),
            ("quantity", serde_json::json!("1")),
            ("request_id", serde_json::json!("7")),
        ] {
            let read = edited(|body| body["reservations"][0][field] = value);
            assert!(matches!(read, Err(DecodeError::Undecodable { .. })), "{field}");
        }
    }
}
