//! The last stage: what follows from decisions, and then the ack. Every step may be done twice.
//!
//! While one turn is under way the ledger decides the next; whatever it has decided by then is settled
//! together.

use futures_util::future::join_all;
use shared::config::limits::{COMMITTED_WAITING, SETTLE_DEADLINE, SETTLE_GROUPS, SETTLE_PART};
use shared::contract::DeadLetter;
use shared::crash;
use shared::domain::{Reservation, partition};
use shared::queue::{self, Outgoing, Publisher};
use shared::stock::Stock;
use shared::telemetry::metrics;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::commit::Committed;
use crate::confirm::confirm_all;

/// Tells Redis and the broker what the ledger has decided, and acknowledges.
pub(crate) struct Settler {
    pub(crate) stock: Stock,
    pub(crate) publisher: Publisher,
    pub(crate) give_up: CancellationToken,
}

impl Settler {
    /// Goes on until nothing more is decided. What is given up half-way is not acknowledged: whoever
    /// gets the deliveries next is sooner there than the reconciler.
    pub(crate) async fn run(self, mut committed: mpsc::Receiver<Committed>) {
        let mut waiting = Vec::with_capacity(COMMITTED_WAITING);
        while committed.recv_many(&mut waiting, COMMITTED_WAITING).await > 0 {
            let mut turn = Committed::default();
            for batch in waiting.drain(..) {
                turn.winners.extend(batch.winners);
                turn.compensations.extend(batch.compensations);
                turn.letters.extend(batch.letters);
                turn.deliveries.extend(batch.deliveries);
            }
            let Some(()) = self.follow_up(turn.winners, turn.compensations, turn.letters).await
            else {
                return;
            };
            crash::point("consumer.settled");
            queue::finish(turn.deliveries).await;
            crash::point("consumer.acknowledged");
        }
    }

    /// Everything that has to be done before the ack. `None`: given up half-way.
    async fn follow_up(
        &self,
        winners: Vec<Reservation>,
        compensations: Vec<Outgoing>,
        letters: Vec<DeadLetter>,
    ) -> Option<()> {
        self.settle(winners, compensations).await?;
        // A letter has no other record: it waits for its confirm, however long that takes.
        let letters = letters.into_iter().map(bury).collect();
        self.publisher.publish_all(letters, &self.give_up).await
    }

    /// Winners and compensations have the ledger's decision and the hold as their record: when Redis
    /// or the broker is away, the reconciler finishes them.
    async fn settle(&self, winners: Vec<Reservation>, compensations: Vec<Outgoing>) -> Option<()> {
        let confirmed = timeout(SETTLE_DEADLINE, self.confirm(winners));
        let published =
            timeout(SETTLE_DEADLINE, self.publisher.publish_all(compensations, &self.give_up));
        let confirmed = confirmed.await;
        crash::point("consumer.confirmed");
        let published = published.await;
        crash::point("consumer.compensated");
        if confirmed.is_err() {
            tracing::warn!("Redis did not hear of all winners; the reconciler tells it");
        }
        if published.is_err() {
            tracing::warn!("RabbitMQ did not take all compensations; the reconciler restores");
        }
        let given_up = confirmed == Ok(None) || published == Ok(None);
        (!given_up).then_some(())
    }

    /// Part by part, side by side: Redis gets the next call while it answers the last, and items do
    /// not wait for each other.
    async fn confirm(&self, winners: Vec<Reservation>) -> Option<()> {
        let mut groups = vec![Vec::new(); usize::from(SETTLE_GROUPS)];
        for winner in winners {
            groups[usize::from(partition(&winner.item, SETTLE_GROUPS))].push(winner);
        }
        let parts = groups.iter().flat_map(|group| group.chunks(SETTLE_PART));
        let told = parts.map(|part| confirm_all(&self.stock, part, &self.give_up));
        join_all(told).await.into_iter().collect()
    }
}

fn bury(letter: DeadLetter) -> Outgoing {
    let DeadLetter { reason, error, source, .. } = &letter;
    tracing::error!(reason, error, source, "a message goes to the dead letters");
    metrics::buried(reason);
    Outgoing::dead_letter(letter)
}
