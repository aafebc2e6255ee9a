//! An operator at work on dead letters.

use std::time::Duration;

use reconciler::letters::{
    DiscardOptions, DiscardReport, Plan, ReplayOptions, ReplayReport, discard, plan, replay,
};
use shared::backends::Backends;
use shared::config::Config;
use shared::contract::{
    Compensation, ReservationsPlaced, encode_compensation, encode_reservations,
};
use shared::domain::{LetterKind, LetterState, Reservation, partition};
use shared::ledger::{KeptLetter, Letter, LetterFilter, Subject};
use shared::queue::{Outgoing, Route};
use tokio_util::sync::CancellationToken;

use crate::line::Line;
use crate::until::until;

/// What an operator works with.
pub struct Desk {
    pub config: Config,
    pub backends: Backends,
}

impl Desk {
    pub fn of(line: &Line) -> Self {
        Self::with(line.config.clone())
    }

    pub fn with(config: Config) -> Self {
        let backends = Backends::open(&config, "trial, operator").expect("backends");
        Self { config, backends }
    }

    /// Replays what fits, as fast as it goes.
    pub async fn replay(&self, filter: &LetterFilter) -> ReplayReport {
        self.replay_as(filter, &ReplayOptions { stop_at_failures: 1.0, ..as_fast_as_it_goes() })
            .await
    }

    /// Replays what fits.
    pub async fn replay_as(&self, filter: &LetterFilter, options: &ReplayOptions) -> ReplayReport {
        let never = CancellationToken::new();
        let Self { config, backends } = self;
        let replayed = replay(config, backends, filter, None, options, &never, |_| ()).await;
        replayed.expect("a replay")
    }

    /// What a replay would do.
    pub async fn plan(&self, filter: &LetterFilter) -> Plan {
        let Backends { ledger, stock, .. } = &self.backends;
        plan(ledger, stock, filter, None, |_| ()).await.expect("a plan")
    }

    /// Discards what fits, for a reason.
    pub async fn discard(&self, filter: &LetterFilter, reason: &str) -> DiscardReport {
        let reason = reason.parse().expect("a reason");
        let options = DiscardOptions { who: "trial".to_owned(), reason };
        let never = CancellationToken::new();
        let discarded = discard(&self.backends, filter, None, &options, &never, |_| ()).await;
        discarded.expect("a discard")
    }

    /// The letter of a reservation, if it is kept.
    pub async fn letter_of(&self, reservation: &Reservation) -> Option<KeptLetter> {
        let id = reservation.reservation_id.as_uuid();
        self.backends.ledger.find_letter(id).await.expect("the ledger")
    }

    /// Waits until the letter of a reservation is parked.
    pub async fn until_parked(&self, reservation: &Reservation) -> KeptLetter {
        until("the reservation is parked", async || {
            let letter = self.letter_of(reservation).await;
            letter.filter(|letter| letter.state == LetterState::Parked)
        })
        .await
    }

    /// Publishes a reservation as ingress does.
    pub async fn publish(&self, reservation: &Reservation) {
        let environment = self.backends.ledger.environment().await.expect("an environment");
        let reservations = vec![reservation.clone()];
        let placed = ReservationsPlaced { environment, reservations };
        let partition = partition(&reservation.item, self.config.rabbitmq.partitions);
        let message = Outgoing::reservations(partition, &placed);
        let never = CancellationToken::new();
        self.backends.publisher.publish_all(vec![message], &never).await.expect("published");
    }

    /// Asks for a reservation's stock back.
    pub async fn compensate(&self, reservation: &Reservation) {
        let environment = self.backends.ledger.environment().await.expect("an environment");
        let reason = "trial".parse().expect("a reason");
        let compensation = Compensation::of(reservation, environment, reason);
        let (route, body) = (Route::Compensations, encode_compensation(&compensation));
        let message = Outgoing { route, headers: Vec::new(), body };
        let never = CancellationToken::new();
        self.backends.publisher.publish_all(vec![message], &never).await.expect("published");
    }

    /// Parks reservations as the reconciler does, without their way through the broker.
    pub async fn park(&self, reservations: &[Reservation]) {
        let environment = self.backends.ledger.environment().await.expect("an environment");
        let letter = |reservation: &Reservation| Letter {
            letter_id: reservation.reservation_id.as_uuid(),
            kind: LetterKind::Reservation,
            subject: Some(Subject {
                environment,
                reservation_id: reservation.reservation_id,
                request_id: reservation.request_id,
                item: reservation.item.clone(),
                buyer: reservation.buyer.clone(),
            }),
            reason: "hopeless".to_owned(),
            error: format!("no place for {}", reservation.request_id),
            source: "orders".to_owned(),
            headers: "{}".to_owned(),
            message_id: None,
            body: encode_reservations(&ReservationsPlaced {
                environment,
                reservations: vec![reservation.clone()],
            }),
        };
        let letters: Vec<_> = reservations.iter().map(letter).collect();
        self.backends.ledger.park(&letters).await.expect("parked");
    }
}

/// Without a canary, without a rate, with patience.
pub fn as_fast_as_it_goes() -> ReplayOptions {
    ReplayOptions {
        who: "trial".to_owned(),
        canary: None,
        rate: 0,
        stop_at_failures: 0.1,
        wait: Duration::from_secs(20),
    }
}

/// Just this letter.
pub fn only(reservation: &Reservation) -> LetterFilter {
    LetterFilter { ids: vec![reservation.reservation_id.as_uuid()], ..LetterFilter::default() }
}
