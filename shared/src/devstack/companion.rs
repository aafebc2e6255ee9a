//! A process of ours beside the backends, such as a service, with the same guarantees: its own
//! group, a record on disk, a guardian, and an end that is certain.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Home, Process, StackError};

const POLL: Duration = Duration::from_millis(5);

/// A running companion. Dropping it kills it.
pub struct Companion {
    // Dropped before the home, whose lock goes last.
    process: Process,
    _home: Home,
}

impl Companion {
    /// Runs a command; its output is appended to `<name>.log` in `dir`.
    pub fn start(name: &'static str, dir: &Path, command: Command) -> Result<Self, StackError> {
        let mut home = Home::open(name, dir)?;
        let process = Process::spawn(&mut home, name, Signal::SIGTERM, command)?;
        Ok(Self { process, _home: home })
    }

    /// How it ended, if it has.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.exit_status()
    }

    /// Asks it to end and waits for it; kills it after `grace`. The status tells which it was.
    pub fn stop(mut self, grace: Duration) -> Result<Option<ExitStatus>, StackError> {
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if let Some(status) = self.exit_status() {
                return Ok(Some(status));
            }
            thread::sleep(POLL);
        }
        self.process.kill()?;
        Ok(self.exit_status())
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) -> Result<(), StackError> {
        self.process.kill()
    }

    /// Freezes it.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets a frozen one go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    pub fn pid(&self) -> i32 {
        self.process.leader().identity.pid
    }

    pub fn log(&self) -> &PathBuf {
        self.process.log()
    }
}
