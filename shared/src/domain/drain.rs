//! When what was reserved before Redis lost an item has been decided, as far as can be told. That
//! spares buyers a refusal; it is not what keeps the law: the ledger decides in any case.

use std::time::Duration;

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainLimits {
    /// When everything that was published before an item was lost has reached its queue.
    pub published_after: Duration,
    /// For how long a queue has to be empty before what was in it counts as decided.
    pub quiet_for: Duration,
    /// How long an item waits at the most.
    pub patience: Duration,
}

/// The wait of one item that nobody can reserve. Times count from any moment that the caller chooses.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    limits: DrainLimits,
    began_at: Duration,
    /// Since when nothing has been seen in its queue.
    quiet_since: Option<Duration>,
}

impl Drain {
    /// Begins when the item is first seen to be lost.
    pub fn begin(limits: DrainLimits, now: Duration) -> Self {
        Self { limits, began_at: now, quiet_since: None }
    }

    /// Takes note of how many messages wait in the item's queue.
    pub fn observe(&mut self, now: Duration, ready_messages: u32) {
        self.quiet_since = (ready_messages == 0).then(|| self.quiet_since.unwrap_or(now));
    }

    /// True when everything has had time to be published and to be decided, or patience is at its end.
    pub fn is_over(&self, now: Duration) -> bool {
        let waited = now.saturating_sub(self.began_at);
        let quiet = self.quiet_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let DrainLimits { published_after, quiet_for, patience } = self.limits;
        (waited >= published_after && quiet >= quiet_for) || waited >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_over_when_the_queue_has_been_quiet_or_patience_ends() {
        let at = |seconds: u64| Duration::from_secs(100 + seconds);
        let limits = DrainLimits {
            published_after: Duration::from_secs(8),
            quiet_for: Duration::from_secs(6),
            patience: Duration::from_secs(40),
        };
        let mut drain = Drain::begin(limits, at(0));
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
