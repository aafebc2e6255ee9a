//! Sorts deliveries: reservations to decide, messages of a later release, and what cannot be read.

use shared::contract::{DeadLetter, DecodeError, decode_reservations};
use shared::domain::{EnvironmentId, Reservation};
use shared::queue::Delivery;

/// What came.
#[derive(Default)]
pub(crate) struct Intake {
    /// In message order.
    pub(crate) reservations: Vec<Reservation>,
    pub(crate) dead: Vec<DeadLetter>,
    /// Finished once the reservations are decided and the dead letters are away.
    pub(crate) deliveries: Vec<Delivery>,
    /// Left for consumers of a later release.
    pub(crate) newer: Vec<Delivery>,
}

/// Reads what came.
pub(crate) fn sort(deliveries: Vec<Delivery>, environment: EnvironmentId) -> Intake {
    let mut intake = Intake::default();
    for delivery in deliveries {
        match decode_reservations(&delivery.body) {
            Ok(placed) if placed.environment == environment => {
                intake.reservations.extend(placed.reservations);
            }
            Ok(placed) => intake.dead.push(DeadLetter {
                reason: "foreign_environment",
                error: format!(
                    "it belongs to environment {}, this is {environment}",
                    placed.environment
                ),
                source: delivery.queue.to_string(),
                body: delivery.body.clone(),
            }),
            Err(error @ DecodeError::NewerVersion { .. }) => {
                tracing::warn!(%error, queue = %delivery.queue, "leaving a message for consumers of a later release");
                intake.newer.push(delivery);
                continue;
            }
            Err(error) => intake.dead.push(DeadLetter {
                reason: "undecodable",
                error: error.to_string(),
                source: delivery.queue.to_string(),
                body: delivery.body.clone(),
            }),
        }
        intake.deliveries.push(delivery);
    }
    intake
}
