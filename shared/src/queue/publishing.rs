//! Keeps a publishing connection and publishes window after window on it.
//!
//! One task owns the channel, because the library mixes up confirms when tasks share one.

use std::future::Future;
use std::pin::pin;
use std::time::Instant;

use futures_util::StreamExt;
use lapin::Event;
use tokio::sync::{mpsc, oneshot, watch};

use super::connection::{Broker, Link};
use super::publisher::{Outgoing, PublishOutcome};
use super::window;
use crate::config::limits::{PUBLISH_DEADLINE, PUBLISH_WINDOW};
use crate::retry::Pauses;

/// Owns the connection and everything that waits for it.
pub(super) struct Supervisor {
    broker: Broker,
    waiting: mpsc::Receiver<Waiting>,
    state: watch::Sender<State>,
}

/// Whether anything can be published, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    Unusable(String),
}

/// A message and whoever waits for what becomes of it.
pub(super) struct Waiting {
    pub(super) message: Outgoing,
    pub(super) since: Instant,
    pub(super) outcome: oneshot::Sender<PublishOutcome>,
}

/// Why a window, or a connection, ended.
enum End {
    /// The connection is of no use any more.
    Broken(String),
    /// Nobody is left to publish.
    Done,
}

impl Supervisor {
    pub(super) fn new(
        broker: Broker,
        waiting: mpsc::Receiver<Waiting>,
        state: watch::Sender<State>,
    ) -> Self {
        Self { broker, waiting, state }
    }

    /// Keeps a connection until the last handle is gone.
    pub(super) async fn run(mut self) {
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
            State::Ready => "RabbitMQ is slow, or its connection is being replaced".to_owned(),
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
                    // What waited behind slow windows for so long is not even begun, so that
                    // nobody waits longer than the two deadlines together.
                    let late = |waiting: &mut Waiting| waiting.since.elapsed() > PUBLISH_DEADLINE;
                    window.extract_if(.., late).for_each(|waiting| self.refuse(waiting));
                    let names = &self.broker.topology.names;
                    let published = window::publish(link, names, std::mem::take(&mut window)).await;
                    if let Err(reason) = published
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
}
