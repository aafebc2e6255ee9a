//! Waiting between attempts. The only file that knows the crate `backoff`.

use std::future::Future;
use std::time::Duration;

use backoff::backoff::Backoff;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use tokio_util::sync::CancellationToken;

/// Growing, jittered pauses between attempts that go on for ever: from 50 ms to 2 s, so that a
/// backend that comes back is used again well within 10 s, and a crowd does not come back at once.
pub struct Pauses(ExponentialBackoff);

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

impl Pauses {
    /// Pauses from the beginning.
    pub fn new() -> Self {
        Self(
            ExponentialBackoffBuilder::new()
                .with_initial_interval(Duration::from_millis(50))
                .with_multiplier(2.0)
                .with_randomization_factor(0.3)
                .with_max_interval(Duration::from_secs(2))
                .with_max_elapsed_time(None)
                .build(),
        )
    }

    /// How long to wait before the next attempt.
    pub fn next_pause(&mut self) -> Duration {
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }

    /// Starts small again, after a success.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

/// Repeats `attempt` until it succeeds. `on_failure` is told of every failure and of the pause
/// before the next attempt. `None` when `stop` was called while waiting: an attempt that has begun
/// is never dropped half-way.
pub async fn until_done<T, E, F>(
    stop: &CancellationToken,
    mut attempt: impl FnMut() -> F,
    mut on_failure: impl FnMut(&E, Duration),
) -> Option<T>
where
    F: Future<Output = Result<T, E>>,
{
    let mut pauses = Pauses::new();
    loop {
        let error = match attempt().await {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        let pause = pauses.next_pause();
        on_failure(&error, pause);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_two_seconds_and_never_end() {
        let mut pauses = Pauses::new();
        let first = pauses.next_pause();
        assert!(first <= Duration::from_millis(65), "{first:?}");
        let last = (0..100).map(|_| pauses.next_pause()).last().expect("a pause");
        assert!(last >= Duration::from_millis(1400), "{last:?}");
        assert!(last <= Duration::from_millis(2600), "{last:?}");
    }

    #[tokio::test]
    async fn it_repeats_until_it_succeeds() {
        let mut failures = 0;
        let mut attempts = 0;
        let stop = CancellationToken::new();
        let done = until_done(
            &stop,
            || {
                attempts += 1;
                let result = if attempts < 3 { Err(attempts) } else { Ok(attempts) };
                async move { result }
            },
            |_, _| failures += 1,
        );
        assert_eq!(done.await, Some(3));
        assert_eq!(failures, 2);
    }

    #[tokio::test]
    async fn it_ends_when_told_to_stop() {
        let stop = CancellationToken::new();
        stop.cancel();
        let done = until_done(&stop, || async { Err::<(), _>("down") }, |_, _| {});
        assert_eq!(done.await, None);
    }
}
