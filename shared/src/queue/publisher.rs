//! The handle through which everybody publishes.

use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::connection::Broker;
use super::error::QueueError;
use super::names::Route;
use super::publishing::{State, Supervisor, Waiting};
use crate::config;
use crate::config::limits::{PUBLISH_WAITING, PUBLISH_WINDOW};
use crate::contract::{DeadLetter, ReservationsPlaced, encode_reservations};
use crate::domain::Namespace;
use crate::retry::Pauses;
use crate::telemetry::metrics;
use crate::telemetry::readiness::{self, Check};

/// A message to publish, persistent.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    pub route: Route,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Outgoing {
    /// Reservations of one partition, on their way to a consumer.
    pub fn reservations(partition: u16, placed: &ReservationsPlaced) -> Self {
        let body = encode_reservations(placed);
        Self { route: Route::Orders { partition }, headers: Vec::new(), body }
    }

    /// A message that nobody could handle, on its way to the dead letters.
    pub fn dead_letter(letter: DeadLetter) -> Self {
        Self { route: Route::Dead, headers: letter.headers(), body: letter.body }
    }
}

/// What is known of a message after it was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The broker has it, and will keep it.
    Confirmed,
    /// It was never sent.
    NotSent(String),
    /// It may be in the queue, or not.
    Unknown(String),
    /// The broker had no queue for it and dropped it.
    Unroutable,
}

impl PublishOutcome {
    /// Its name in metrics.
    fn name(&self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Unroutable => "unroutable",
        }
    }
}

/// A handle on a publishing connection; cheap to clone. The last clone closes it.
#[derive(Clone)]
pub struct Publisher {
    outgoing: mpsc::Sender<Waiting>,
    state: watch::Receiver<State>,
}

impl Publisher {
    /// Begins to connect, and returns at once.
    pub fn connect(
        config: &config::RabbitMq,
        namespace: &Namespace,
        name: &str,
    ) -> Result<Self, QueueError> {
        let broker = Broker::new(config, namespace, name)?;
        let (outgoing, waiting) = mpsc::channel(PUBLISH_WAITING);
        let (state, shown) = watch::channel(State::Unusable(format!(
            "not connected to RabbitMQ at {} yet",
            broker.address
        )));
        tokio::spawn(Supervisor::new(broker, waiting, state).run());
        Ok(Self { outgoing, state: shown })
    }

    /// Why nothing can be published right now, if so.
    pub fn trouble(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Ready if self.outgoing.is_closed() => Some("the publisher has ended".to_owned()),
            State::Ready if self.outgoing.capacity() == 0 => {
                Some("too many messages wait for RabbitMQ's confirm".to_owned())
            }
            State::Ready => None,
            State::Unusable(reason) => Some(reason.clone()),
        }
    }

    /// Publishes a message and waits for the broker's word, with a bound.
    pub async fn publish(&self, message: Outgoing) -> PublishOutcome {
        if let Some(reason) = self.trouble() {
            return PublishOutcome::NotSent(reason);
        }
        let (outcome, answer) = oneshot::channel();
        let waiting = Waiting { message, since: Instant::now(), outcome };
        if self.outgoing.try_send(waiting).is_err() {
            return PublishOutcome::NotSent("too many messages wait already".to_owned());
        }
        answer.await.unwrap_or_else(|_| PublishOutcome::Unknown("the publisher ended".to_owned()))
    }

    /// Publishes messages until the broker has every one of them. `None`: given up half-way. A
    /// message may be published more than once.
    pub async fn publish_all(
        &self,
        mut messages: Vec<Outgoing>,
        give_up: &CancellationToken,
    ) -> Option<()> {
        let mut pauses = Pauses::new();
        while !messages.is_empty() {
            // No more than what may wait, so that a long list does not refuse itself.
            let turn: Vec<_> = messages.drain(..messages.len().min(PUBLISH_WINDOW)).collect();
            let outcomes = join_all(turn.iter().map(|message| self.publish(message.clone()))).await;
            tell_of_letters(&turn, &outcomes);
            let mut reason = None;
            for (message, outcome) in turn.into_iter().zip(outcomes) {
                if outcome != PublishOutcome::Confirmed {
                    reason = Some(outcome);
                    messages.push(message);
                }
            }
            if let Some(outcome) = reason {
                let pause = pauses.next_pause();
                tracing::warn!(
                    ?outcome,
                    ?pause,
                    waiting = messages.len(),
                    "keeping messages until RabbitMQ takes them"
                );
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = give_up.cancelled() => return None,
                }
            }
        }
        Some(())
    }
}

/// A dead letter that the broker does not take is loud: whatever else travelled with it waits.
fn tell_of_letters(messages: &[Outgoing], outcomes: &[PublishOutcome]) {
    let letters = messages.iter().zip(outcomes).filter(|(message, _)| message.route == Route::Dead);
    let mut trouble = None;
    let mut any = false;
    for (_, outcome) in letters {
        any = true;
        if *outcome != PublishOutcome::Confirmed {
            metrics::letter_not_taken(outcome.name());
            trouble = Some(format!("RabbitMQ does not take dead letters: {outcome:?}"));
        }
    }
    if any {
        readiness::report(Check::DeadLetters, trouble);
    }
}
