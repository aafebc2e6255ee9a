//! Which letters a message is: one for each reservation, or one for bytes that cannot be read. The
//! same bytes are always the same letters.

use shared::contract::{
    ReservationsPlaced, decode_compensation, decode_reservations, encode_reservations,
};
use shared::domain::{LetterKind, Reservation};
use shared::ledger::Subject;
use uuid::Uuid;

/// The UUIDv5 namespace of letters that are named by their bytes.
const BY_BYTES: Uuid = Uuid::from_u128(0x6c61_7374_756e_6974_8000_6c65_7474_6572);

/// One letter of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub letter_id: Uuid,
    pub kind: LetterKind,
    pub subject: Option<Subject>,
    /// Of this letter alone.
    pub body: Vec<u8>,
}

/// The letters of a message.
pub fn identities(body: &[u8]) -> Vec<Identity> {
    if let Ok(placed) = decode_reservations(body) {
        let ReservationsPlaced { environment, reservations } = placed;
        let is_alone = reservations.len() == 1;
        let alone = |reservation: Reservation| {
            let subject = Subject {
                environment,
                reservation_id: reservation.reservation_id,
                request_id: reservation.request_id,
                item: reservation.item.clone(),
                buyer: reservation.buyer.clone(),
            };
            let letter_id = subject.reservation_id.as_uuid();
            let placed = ReservationsPlaced { environment, reservations: vec![reservation] };
            // One that travelled alone stays exactly as it came.
            let body = if is_alone { body.to_vec() } else { encode_reservations(&placed) };
            Identity { letter_id, kind: LetterKind::Reservation, subject: Some(subject), body }
        };
        return reservations.into_iter().map(alone).collect();
    }
    // Not the reservation's own id: a compensation that was refused is not its reservation.
    let letter_id = Uuid::new_v5(&BY_BYTES, body);
    if let Ok(compensation) = decode_compensation(body) {
        let subject = Some(Subject {
            environment: compensation.environment,
            reservation_id: compensation.reservation_id,
            request_id: compensation.request_id,
            item: compensation.item,
            buyer: compensation.buyer,
        });
        let kind = LetterKind::Compensation;
        return vec![Identity { letter_id, kind, subject, body: body.to_vec() }];
    }
    let kind = LetterKind::Unreadable;
    vec![Identity { letter_id, kind, subject: None, body: body.to_vec() }]
}
