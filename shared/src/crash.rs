//! Named points at which a trial lets a process die. Compiled only for trials, with the feature
//! `crash-points`; everywhere else a point is nothing.

/// Marks a step; does nothing.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// Dies here if `CRASH_AT` names this point: `consumer.committed` the first time it is passed,
/// `consumer.committed:3` the third time.
#[cfg(feature = "crash-points")]
pub fn point(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let Ok(wanted) = std::env::var("CRASH_AT") else { return };
    let (wanted, times) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == times.parse().unwrap_or(1) {
        eprintln!("crash point {name}");
        std::process::abort();
    }
}
