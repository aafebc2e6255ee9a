//! Named points at which a trial lets a process die or stand still. Compiled only for trials, with the
//! feature `crash-points`; everywhere else a point is nothing.

/// Marks a step; does nothing.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// Dies here if `CRASH_AT` names this point: `consumer.committed` the first time it is passed,
/// `consumer.committed:3` the third time. `STOP_AT` lets the process stand still instead, as
/// SIGSTOP does, until SIGCONT.
#[cfg(feature = "crash-points")]
pub fn point(name: &'static str) {
    use std::sync::atomic::AtomicU32;

    use nix::sys::signal::{Signal, raise};

    static DEATHS: AtomicU32 = AtomicU32::new(0);
    static STOPS: AtomicU32 = AtomicU32::new(0);

    if is_wanted("CRASH_AT", name, &DEATHS) {
        eprintln!("crash point {name}");
        std::process::abort();
    }
    if is_wanted("STOP_AT", name, &STOPS) {
        eprintln!("stops at {name}");
        let _ = raise(Signal::SIGSTOP);
    }
}

/// Does this variable name the point, and is it passed as often now as it says?
#[cfg(feature = "crash-points")]
fn is_wanted(variable: &str, name: &str, passed: &std::sync::atomic::AtomicU32) -> bool {
    use std::sync::atomic::Ordering;

    let Ok(wanted) = std::env::var(variable) else { return false };
    let (wanted, times) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    wanted == name && passed.fetch_add(1, Ordering::SeqCst) + 1 == times.parse().unwrap_or(1)
}
