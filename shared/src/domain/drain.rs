//! When what was reserved before Redis lost an item has been decided, as far as can be told. That
//! spares buyers a refusal; it is not what keeps the law: the ledger decides in any case.

use std::time::{Duration, Instant};

use crate::config::limits::{DRAIN_PATIENCE, PUBLISHED_AFTER, QUIET_FOR};

/// The wait of one item that nobody can reserve.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    began_at: Instant,
    /// Since when nothing has been seen in its queue.
    quiet_since: Option<Instant>,
}

impl Drain {
    /// Begins when the item is first seen to be lost.
    pub fn begin(now: Instant) -> Self {
        Self { began_at: now, quiet_since: None }
    }

    /// Takes note of how many messages wait in the item's queue.
    pub fn observe(&mut self, now: Instant, ready_messages: u32) {
        self.quiet_since = (ready_messages == 0).then(|| self.quiet_since.unwrap_or(now));
    }

    /// True when everything has had time to be published and to be decided, or patience is at its end.
    pub fn is_over(&self, now: Instant) -> bool {
        let waited = now.duration_since(self.began_at);
        let quiet = self.quiet_since.map_or(Duration::ZERO, |since| now.duration_since(since));
        (waited >= PUBLISHED_AFTER && quiet >= QUIET_FOR) || waited >= DRAIN_PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_over_when_the_queue_has_been_quiet_or_patience_ends() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut drain = Drain::begin(began);
        drain.observe(at(0), 0);
        assert!(!drain.is_over(at(7)), "a message may still be on its way to the queue");
        assert!(drain.is_over(at(8)));
        drain.observe(at(8), 3);
        assert!(!drain.is_over(at(30)), "messages wait");
        drain.observe(at(30), 0);
        assert!(!drain.is_over(at(35)), "the last one may be in a consumer's hands");
        assert!(drain.is_over(at(36)));
        drain.observe(at(36), 1);
        assert!(!drain.is_over(at(39)));
        assert!(drain.is_over(at(40)), "patience");
    }
}
