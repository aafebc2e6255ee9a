//! Waiting for a condition. Nothing here waits for time to pass.

use std::time::{Duration, Instant};

/// Far longer than anything takes on an idle machine, so that a busy one fails no test.
pub const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(10);

/// Asks until there is an answer.
///
/// # Panics
///
/// When there is none within [`PATIENCE`].
pub async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask).await
}

/// Asks until there is an answer.
///
/// # Panics
///
/// When there is none within the bound, which is part of what the test claims.
pub async fn within<T>(bound: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = Waiting::for_at_most(bound);
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        waiting.a_moment(what).await;
    }
}

/// A wait that has begun. For loops inside a spawned task, which cannot lend what it owns to a
/// closure.
pub struct Waiting {
    begun: Instant,
    bound: Duration,
}

impl Waiting {
    pub fn for_at_most(bound: Duration) -> Self {
        Self { begun: Instant::now(), bound }
    }

    /// Waits until it is worth asking again.
    ///
    /// # Panics
    ///
    /// When the bound is over.
    pub async fn a_moment(&self, what: &str) {
        let Self { begun, bound } = self;
        assert!(begun.elapsed() < *bound, "not within {bound:?}: {what}");
        tokio::time::sleep(POLL).await;
    }
}
