//! Publishes with confirms, in windows: everything that waits, at most
//! [`PUBLISH_WINDOW`] messages, goes out together and is confirmed before the next window begins.
//!
//! One task owns the channel, because the library mixes up confirms when tasks share one. And one
//! window at a time, because it may hand the return of an unroutable message to the confirm of
//! another one: within a window, returns are matched by message id.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use lapin::options::BasicPublishOptions;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Confirmation, Event};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connection::{Broker, Link};
use super::error::QueueError;
use super::names::Route;
use crate::config;
use crate::config::limits::{PUBLISH_DEADLINE, PUBLISH_WAITING, PUBLISH_WINDOW};
use crate::contract::DeadLetter;
use crate::domain::Namespace;
use crate::retry::Pauses;

/// A message to publish, persistent.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    pub route: Route,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Outgoing {
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

/// A handle on a publishing connection; cheap to clone. The last clone closes it.
#[derive(Clone)]
pub struct Publisher {
    outgoing: mpsc::Sender<Waiting>,
    state: watch::Receiver<State>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Ready,
    Unusable(String),
}

struct Waiting {
    message: Outgoing,
    outcome: oneshot::Sender<PublishOutcome>,
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
        tokio::spawn(Supervisor { broker, waiting, state }.run());
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
        if self.outgoing.try_send(Waiting { message, outcome }).is_err() {
            return PublishOutcome::NotSent("too many messages wait already".to_owned());
        }
        answer.await.unwrap_or_else(|_| PublishOutcome::Unknown("the publisher ended".to_owned()))
    }
}

impl Publisher {
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

/// Owns the connection and everything that waits for it.
struct Supervisor {
    broker: Broker,
    waiting: mpsc::Receiver<Waiting>,
    state: watch::Sender<State>,
}

/// Why a window, or a connection, ended.
enum End {
    /// The connection is of no use any more.
    Broken(String),
    /// Nobody is left to publish.
    Done,
}

impl Supervisor {
    async fn run(mut self) {
        let mut pauses = Pauses::new();
        let mut told = false;
        while !self.waiting.is_closed() {
            let broker = self.broker.clone();
            match self.refusing_until(async move { broker.connect().await }).await {
                Ok(link) => {
                    tracing::info!(address = %self.broker.address, "connected to RabbitMQ for publishing");
                    (pauses, told) = (Pauses::new(), false);
                    self.state.send_replace(State::Ready);
                    let End::Broken(reason) = self.serve(&link).await else {
                        link.close().await;
                        return;
                    };
                    tracing::warn!(address = %self.broker.address, reason, "replacing the publishing connection");
                    self.unusable(reason);
                    // A broker that does not answer does not answer this either.
                    self.refusing_until(link.close()).await;
                }
                Err(error) => {
                    if !told {
                        tracing::warn!(%error, "cannot publish; trying again until RabbitMQ answers");
                        told = true;
                    }
                    self.state.send_replace(State::Unusable(error.to_string()));
                    self.refusing_until(tokio::time::sleep(pauses.next_pause())).await;
                }
            }
        }
    }

    /// Does something else while there is no connection; whoever still hands over a message is
    /// told at once.
    async fn refusing_until<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                Some(waiting) = self.waiting.recv() => self.refuse(waiting),
            }
        }
    }

    fn refuse(&self, waiting: Waiting) {
        let reason = match &*self.state.borrow() {
            State::Ready => "the connection to RabbitMQ is being replaced".to_owned(),
            State::Unusable(reason) => reason.clone(),
        };
        // A caller that stopped waiting does not need its answer.
        let _ = waiting.outcome.send(PublishOutcome::NotSent(reason));
    }

    fn unusable(&self, reason: String) {
        let address = &self.broker.address;
        self.state.send_replace(State::Unusable(format!("RabbitMQ at {address}: {reason}")));
    }

    /// Publishes window after window until the connection breaks.
    async fn serve(&mut self, link: &Link) -> End {
        let mut events = pin!(link.connection.events_listener());
        let mut window = Vec::with_capacity(PUBLISH_WINDOW);
        loop {
            // What broke before the listener was there sends it no event.
            if !link.channel.status().connected() {
                return End::Broken("the channel was closed".to_owned());
            }
            let blocked = link.connection.status().blocked();
            self.show_blocked(blocked);
            tokio::select! {
                event = events.next() => match event {
                    Some(Event::Error(error)) => return End::Broken(error.to_string()),
                    Some(_) => {}
                    None => return End::Broken("the connection ended".to_owned()),
                },
                taken = self.waiting.recv_many(&mut window, PUBLISH_WINDOW) => {
                    if taken == 0 {
                        return End::Done;
                    }
                    if blocked {
                        window.drain(..).for_each(|waiting| self.refuse(waiting));
                        continue;
                    }
                    if let Err(reason) = self.publish_window(link, std::mem::take(&mut window)).await
                        && !link.connection.status().blocked()
                    {
                        return End::Broken(reason);
                    }
                }
            }
        }
    }

    fn show_blocked(&self, blocked: bool) {
        if blocked && *self.state.borrow() == State::Ready {
            tracing::warn!(address = %self.broker.address, "RabbitMQ blocks publishing (memory or disk alarm)");
            self.unusable("it blocks publishing (memory or disk alarm)".to_owned());
        } else if !blocked && *self.state.borrow() != State::Ready {
            tracing::info!(address = %self.broker.address, "RabbitMQ takes messages again");
            self.state.send_replace(State::Ready);
        }
    }

    /// Publishes a window and tells everybody what became of their message. An error means that
    /// the connection cannot be trusted any more.
    async fn publish_window(&self, link: &Link, window: Vec<Waiting>) -> Result<(), String> {
        let mut outcomes: Vec<Option<Result<Confirmation, lapin::Error>>> = Vec::new();
        outcomes.resize_with(window.len(), || None);
        let ids: Vec<Uuid> = window.iter().map(|_| Uuid::new_v4()).collect();
        let on_time = timeout(PUBLISH_DEADLINE, async {
            let mut confirms = Vec::with_capacity(window.len());
            for (waiting, id) in window.iter().zip(&ids) {
                confirms.push(self.send(link, &waiting.message, *id).await);
            }
            for (confirm, outcome) in confirms.into_iter().zip(&mut outcomes) {
                *outcome = Some(match confirm {
                    Ok(confirm) => confirm.await,
                    Err(error) => Err(error),
                });
            }
        })
        .await
        .is_ok();

        let returned: HashSet<Uuid> =
            outcomes.iter().flatten().flatten().filter_map(returned_id).collect();
        let mut trouble = (!on_time).then(|| no_confirm(PUBLISH_DEADLINE));
        for ((waiting, id), outcome) in window.into_iter().zip(ids).zip(outcomes) {
            let outcome = match outcome {
                _ if returned.contains(&id) => PublishOutcome::Unroutable,
                Some(Ok(Confirmation::Ack(_))) => PublishOutcome::Confirmed,
                Some(Ok(Confirmation::Nack(_))) => {
                    PublishOutcome::Unknown("RabbitMQ refused the message".to_owned())
                }
                Some(Ok(Confirmation::NotRequested)) => {
                    PublishOutcome::Unknown("the channel does not confirm".to_owned())
                }
                Some(Err(error)) => {
                    let reason = error.to_string();
                    trouble.get_or_insert(reason.clone());
                    PublishOutcome::Unknown(reason)
                }
                None => PublishOutcome::Unknown(no_confirm(PUBLISH_DEADLINE)),
            };
            let _ = waiting.outcome.send(outcome);
        }
        if !returned.is_empty() {
            // A queue or a binding is gone: a new connection declares everything again.
            trouble.get_or_insert("a message had no queue to go to".to_owned());
        }
        trouble.map_or(Ok(()), Err)
    }

    async fn send(
        &self,
        link: &Link,
        message: &Outgoing,
        id: Uuid,
    ) -> Result<lapin::PublisherConfirm, lapin::Error> {
        let names = &self.broker.topology.names;
        let (exchange, key, mandatory) = match message.route {
            // What cannot be routed here goes to the alternate exchange.
            Route::Orders { partition } => (names.reservations(), partition.to_string(), false),
            Route::Compensations => (names.compensations(), String::new(), true),
            Route::Dead => (names.dead(), String::new(), true),
        };
        let mut headers = FieldTable::default();
        for (name, value) in &message.headers {
            headers.insert((*name).into(), AMQPValue::LongString(value.as_str().into()));
        }
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("application/json".into())
            .with_message_id(id.to_string().as_str().into())
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory, ..Default::default() };
        link.channel
            .basic_publish(
                exchange.as_str().into(),
                key.as_str().into(),
                options,
                &message.body,
                properties,
            )
            .await
    }
}

/// AMQP's delivery mode for messages that survive a restart of the broker.
const PERSISTENT: u8 = 2;

fn no_confirm(deadline: Duration) -> String {
    format!("no confirm within {} s", deadline.as_secs())
}

fn returned_id(confirmation: &Confirmation) -> Option<Uuid> {
    let (Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))) = confirmation
    else {
        return None;
    };
    returned.delivery.properties.message_id().as_ref()?.as_str().parse().ok()
}
