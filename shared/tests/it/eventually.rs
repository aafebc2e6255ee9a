//! Waits for a condition, with a bound.

use std::time::{Duration, Instant};

/// Asks again until the answer is there. Panics when it is not there within `bound`.
pub(crate) async fn eventually<T>(
    what: &str,
    bound: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {bound:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
