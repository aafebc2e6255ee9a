//! Turns a dead message into rows: one for each reservation, or one for bytes that cannot be read.

use shared::contract::{
    ReservationsPlaced, decode_compensation, decode_reservations, encode_reservations,
};
use shared::domain::{LetterKind, Reservation};
use shared::ledger::{Letter, Subject};
use shared::queue::Delivery;
use uuid::Uuid;

/// The UUIDv5 namespace of letters that are named by their bytes.
const UNREADABLE: Uuid = Uuid::from_u128(0x6c61_7374_756e_6974_8000_6c65_7474_6572);

/// The rows of a message. The same message always gives the same rows.
pub(crate) fn letters(delivery: &Delivery) -> Vec<Letter> {
    if let Ok(placed) = decode_reservations(&delivery.body) {
        let ReservationsPlaced { environment, reservations } = placed;
        let alone = |reservation: Reservation| {
            let subject = Subject {
                environment,
                reservation_id: reservation.reservation_id,
                request_id: reservation.request_id,
                item: reservation.item.clone(),
                buyer: reservation.buyer.clone(),
            };
            let placed = ReservationsPlaced { environment, reservations: vec![reservation] };
            let id = subject.reservation_id.as_uuid();
            let kind = LetterKind::Reservation;
            letter(delivery, id, kind, Some(subject), encode_reservations(&placed))
        };
        return reservations.into_iter().map(alone).collect();
    }
    if let Ok(compensation) = decode_compensation(&delivery.body) {
        let subject = Subject {
            environment: compensation.environment,
            reservation_id: compensation.reservation_id,
            request_id: compensation.request_id,
            item: compensation.item,
            buyer: compensation.buyer,
        };
        // Not the reservation's own id: a compensation that was refused is not its reservation.
        let id = Uuid::new_v5(&UNREADABLE, &delivery.body);
        let kind = LetterKind::Compensation;
        return vec![letter(delivery, id, kind, Some(subject), delivery.body.clone())];
    }
    let id = Uuid::new_v5(&UNREADABLE, &delivery.body);
    vec![letter(delivery, id, LetterKind::Unreadable, None, delivery.body.clone())]
}

fn letter(
    delivery: &Delivery,
    letter_id: Uuid,
    kind: LetterKind,
    subject: Option<Subject>,
    body: Vec<u8>,
) -> Letter {
    let header = |name: &str| delivery.headers.get(name).cloned();
    Letter {
        letter_id,
        kind,
        subject,
        reason: header("reason").unwrap_or_else(|| "dropped_by_broker".to_owned()),
        error: header("error").unwrap_or_default(),
        source: header("source").unwrap_or_else(|| delivery.queue.to_string()),
        headers: delivery.all_headers.to_string(),
        message_id: delivery.message_id.clone(),
        body,
    }
}
