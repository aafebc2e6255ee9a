//! One process of a backend: spawned into its own group, recorded, guarded, and ended on drop.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::guardian::Guardian;
use super::process_table::Identity;
use super::{Home, StackError, termination};

/// What a record on disk needs to know to end a process whose owner is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leader {
    pub(super) name: String,
    pub(super) stop_signal: String,
    #[serde(flatten)]
    pub(super) identity: Identity,
}

impl Leader {
    pub(super) fn stop(&self, grace: Duration) -> Result<(), StackError> {
        let signal = self.stop_signal.parse().unwrap_or(Signal::SIGTERM);
        termination::stop(&self.name, &self.identity, signal, grace)
    }
}

/// A running process that this one owns.
pub struct Process {
    child: Child,
    leader: Leader,
    log: PathBuf,
    /// Gone once the process is left to itself.
    guardian: Option<Guardian>,
    detached: bool,
}

impl Process {
    /// Output is appended to `<name>.log` in the backend's home.
    pub(super) fn spawn(
        home: &mut Home,
        name: &str,
        stop_signal: Signal,
        mut command: Command,
    ) -> Result<Self, StackError> {
        let log = home.file(&format!("{name}.log"));
        let open = OpenOptions::new().create(true).append(true).open(&log);
        let output = open.map_err(StackError::file("opening", &log))?;
        let errors = output.try_clone().map_err(StackError::file("opening", &log))?;
        // In a group of its own, Ctrl-C at the terminal reaches only the owner, which then stops
        // the backends in order.
        command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(|source| StackError::Spawn { program, source })?;
        let pid = child.id().cast_signed();
        // A process that is already a zombie has no identity to find; nothing will match this one.
        let identity = Identity::of(pid).unwrap_or(Identity { pid, started: String::new() });
        let guardian = Guardian::watch(&identity, stop_signal);
        let leader = Leader {
            name: name.to_owned(),
            stop_signal: stop_signal.as_str().to_owned(),
            identity,
        };
        // From here on, dropping `process` ends it, also when recording fails.
        let process = Self { child, leader, log, guardian, detached: false };
        home.record(&process.leader)?;
        Ok(process)
    }

    pub(super) fn leader(&self) -> &Leader {
        &self.leader
    }

    pub(super) fn log(&self) -> &PathBuf {
        &self.log
    }

    pub(super) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(super) fn stop(&mut self, grace: Duration) -> Result<(), StackError> {
        self.leader.stop(grace)?;
        self.reap();
        Ok(())
    }

    pub(super) fn kill(&mut self) -> Result<(), StackError> {
        termination::kill(&self.leader.name, &self.leader.identity)?;
        self.reap();
        Ok(())
    }

    pub(super) fn pause(&self) {
        termination::pause(&self.leader.identity);
    }

    pub(super) fn resume(&self) {
        termination::resume(&self.leader.identity);
    }

    /// Lets it run on after this process ends.
    pub(super) fn detach(&mut self) {
        self.guardian = None;
        self.detached = true;
    }

    /// Only called when the process is known to be gone, so this does not block.
    fn reap(&mut self) {
        self.guardian = None;
        let _ = self.child.wait();
    }
}

/// By SIGKILL, because it must be fast and certain, also while a panic unwinds. All three backends
/// keep what they confirmed through that; who wants them to say goodbye calls `stop` before.
impl Drop for Process {
    fn drop(&mut self) {
        if self.detached || self.exit_status().is_some() {
            return;
        }
        if let Err(error) = self.kill() {
            tracing::error!(%error, "a process of the local stack could not be stopped");
        }
    }
}
