//! Ending, pausing and resuming a backend's process with all that belongs to it.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;

use super::StackError;
use super::process_table::{Identity, members};

/// Long enough for the kernel to tear down a large process, short enough to notice a stuck one.
const KILL_BOUND: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// Asks with `signal`, waits up to `grace`, and kills whatever is left then.
pub(super) fn stop(
    name: &str,
    leader: &Identity,
    signal: Signal,
    grace: Duration,
) -> Result<(), StackError> {
    let all = members(leader);
    signal_one(leader, signal);
    // A paused process would only see the signal once it runs again.
    for member in &all {
        signal_one(member, Signal::SIGCONT);
    }
    if wait_gone(&all, grace) {
        return Ok(());
    }
    // The leader may have ended in time and left a child behind, so each is killed by itself.
    for member in &all {
        kill(name, member)?;
    }
    Ok(())
}

/// Kills the leader and all its members at once, and returns when they are gone.
pub(super) fn kill(name: &str, leader: &Identity) -> Result<(), StackError> {
    // A frozen leader cannot start further children while they are being counted.
    signal_one(leader, Signal::SIGSTOP);
    let all = members(leader);
    for member in &all {
        signal_one(member, Signal::SIGKILL);
    }
    if wait_gone(&all, KILL_BOUND) {
        return Ok(());
    }
    let seconds = KILL_BOUND.as_secs();
    Err(StackError::Unkillable { name: name.to_owned(), pid: leader.pid, seconds })
}

/// Freezes the leader first: it then neither starts children nor replaces frozen ones.
pub(super) fn pause(leader: &Identity) {
    signal_one(leader, Signal::SIGSTOP);
    for member in members(leader) {
        signal_one(&member, Signal::SIGSTOP);
    }
}

/// The reverse order of [`pause`].
pub(super) fn resume(leader: &Identity) {
    for member in members(leader).iter().filter(|member| *member != leader) {
        signal_one(member, Signal::SIGCONT);
    }
    signal_one(leader, Signal::SIGCONT);
}

/// The one place that sends signals: never to a pid whose start time is not the expected one.
/// That the process ended meanwhile is not an error; it is what most callers want.
fn signal_one(process: &Identity, signal: Signal) {
    if process.is_alive() {
        let _ = send(Pid::from_raw(process.pid), signal);
    }
}

fn wait_gone(processes: &[Identity], bound: Duration) -> bool {
    let deadline = Instant::now() + bound;
    loop {
        if !processes.iter().any(Identity::is_alive) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(POLL);
    }
}
