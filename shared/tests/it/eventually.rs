//! Waits for a condition, with a bound.

use std::time::{Duration, Instant};

/// Asks again until the answer is there. Panics when it is not there within `bound`.
pub(crate) async fn eventually<T, F>(what: &str, bound: Duration, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + bound;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {bound:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
