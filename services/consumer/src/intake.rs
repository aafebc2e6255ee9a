//! Reads deliveries: reservations to decide, messages of a later release, and what cannot be read.

use shared::contract::{DeadLetter, DecodeError, decode_reservations};
use shared::domain::{EnvironmentId, Reservation};
use shared::queue::Delivery;

/// What a delivery is.
pub(crate) enum Intake {
    Taken(Taken),
    /// Left for consumers of a later release.
    Newer(Delivery),
}

/// A delivery that was read. It is finished once its reservations are decided, and its letter is away.
pub(crate) struct Taken {
    pub(crate) delivery: Delivery,
    /// In message order.
    pub(crate) reservations: Vec<Reservation>,
    /// Instead of reservations, when they cannot be read or belong elsewhere.
    pub(crate) letter: Option<DeadLetter>,
}

/// Reads a delivery.
pub(crate) fn read(delivery: Delivery, environment: EnvironmentId) -> Intake {
    let (reason, error) = match decode_reservations(&delivery.body) {
        Ok(placed) if placed.environment == environment => {
            let reservations = placed.reservations;
            return Intake::Taken(Taken { delivery, reservations, letter: None });
        }
        Ok(placed) => {
            let theirs = placed.environment;
            let error = format!("it belongs to environment {theirs}, this is {environment}");
            ("foreign_environment", error)
        }
        Err(error @ DecodeError::NewerVersion { .. }) => {
            tracing::warn!(%error, queue = %delivery.queue, "leaving a message for consumers of a later release");
            return Intake::Newer(delivery);
        }
        Err(error) => ("undecodable", error.to_string()),
    };
    let (source, body) = (delivery.queue.to_string(), delivery.body.clone());
    let letter = Some(DeadLetter { reason, error, source, body });
    Intake::Taken(Taken { delivery, reservations: Vec::new(), letter })
}
