//! Finds subscriptions that the broker has forgotten.
//!
//! When a queue is deleted while a delivery of it is being acknowledged, and somebody declares it
//! again at once, RabbitMQ 3.10 neither ends the old consumption nor delivers anything to it. So a
//! queue that has messages, and brings us none although we hold none of it, counts as forgotten.

use std::collections::HashMap;
use std::sync::Arc;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;

use super::connection::Link;
use super::names::{Names, Queue};

/// What one subscription knows of its queues.
pub(super) struct Ghosts {
    queues: HashMap<Queue, Watched>,
}

#[derive(Default)]
struct Watched {
    /// Counts the deliveries that somebody still works on, by its copies.
    in_hand: Arc<()>,
    came_since_check: bool,
    /// It had messages for us at the last check, and none came.
    suspicious: bool,
}

/// A delivery of a queue that is not finished yet.
pub(super) struct InHand {
    _copy: Arc<()>,
}

impl Ghosts {
    pub(super) fn of(queues: &[Queue]) -> Self {
        Self { queues: queues.iter().map(|queue| (*queue, Watched::default())).collect() }
    }

    /// Notes a delivery.
    pub(super) fn came(&mut self, queue: Queue) -> InHand {
        let watched = self.queues.entry(queue).or_default();
        (watched.came_since_check, watched.suspicious) = (true, false);
        InHand { _copy: Arc::clone(&watched.in_hand) }
    }

    /// A queue that had messages at two checks in a row and brought none in between.
    pub(super) async fn check(&mut self, link: &Link, names: &Names) -> Option<Queue> {
        for (queue, watched) in &mut self.queues {
            let idle = !watched.came_since_check && Arc::strong_count(&watched.in_hand) == 1;
            watched.came_since_check = false;
            let waits = idle && ready(link, &names.queue(*queue)).await > 0;
            if waits && watched.suspicious {
                return Some(*queue);
            }
            watched.suspicious = waits;
        }
        None
    }
}

/// Messages that the queue has for whoever asks; none when it cannot be said. On a channel of its
/// own, because asking for a queue that is gone closes the channel.
async fn ready(link: &Link, queue: &str) -> u32 {
    let Ok(channel) = link.connection.create_channel().await else { return 0 };
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let declared = channel.queue_declare(queue.into(), passive, FieldTable::default()).await;
    let ready = declared.map_or(0, |queue| queue.message_count());
    let _ = channel.close(200, "asked".into()).await;
    ready
}
