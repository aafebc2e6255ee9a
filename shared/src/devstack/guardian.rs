//! Stops a backend whose owner was killed.
//!
//! A panic unwinds and Ctrl-C can be handled, but nothing runs in an owner that got SIGKILL, as a
//! test runner sends after a time limit. So a small shell holds the reading end of a pipe that only
//! the owner can write to: however the owner ends, the kernel closes the pipe and the shell wakes.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;

use super::process_table::Identity;

/// Checks the start time like everything here, in plain shell: fields 3 and up of `stat`, of which
/// the twentieth is the start time. Without /proc only the pid can be checked.
const WATCH: &str = r#"
read -r _
if [ -r "/proc/$1/stat" ]; then
    stat=$(cat "/proc/$1/stat")
    expected=$2 signal=$3 pid=$1
    set -- ${stat##*) }
    shift 19
    [ "$1" = "$expected" ] || exit 0
    set -- "$pid" "$expected" "$signal"
fi
kill -s "$3" "$1" && kill -s CONT "$1"
"#;

pub(super) struct Guardian(Child);

impl Guardian {
    /// `None` when there is no shell: then only the next start in the same directory cleans up.
    pub(super) fn watch(process: &Identity, signal: Signal) -> Option<Self> {
        let ticks = process.started.split('@').next().unwrap_or_default();
        let signal = signal.as_str().trim_start_matches("SIG");
        let child = Command::new("/bin/sh")
            .args(["-c", WATCH, "lastunit-guardian", &process.pid.to_string(), ticks, signal])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Ctrl-C at the terminal must not reach it.
            .process_group(0)
            .spawn();
        child.ok().map(Self)
    }
}

/// Dismissed before its pipe closes, so it never acts on an owner that is in order.
impl Drop for Guardian {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
