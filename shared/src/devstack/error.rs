//! What can go wrong with the local stack, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Every variant says what was being done, to what, and where it helps, what to do next.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error(
        "cannot find the program {program} in PATH or the usual places; it comes with the package \
         {package}: run compose/install-backends.sh"
    )]
    ProgramMissing { program: &'static str, package: &'static str },

    #[error(
        "{backend} in {} is in use by another LastUnit process; end that one first, or choose \
         another directory", dir.display()
    )]
    InUse { backend: &'static str, dir: PathBuf },

    #[error("{backend} still runs in {}; `lastunit stack down` stops it", dir.display())]
    StillRunning { backend: String, dir: PathBuf },

    #[error("{doing} {}: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },

    #[error("starting {}: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },

    #[error("{doing} failed ({status}): {output}")]
    Tool { doing: String, status: ExitStatus, output: String },

    #[error(
        "{backend} ended while it was starting ({status}); its log {} ends with:\n{tail}",
        log.display()
    )]
    Ended { backend: &'static str, status: ExitStatus, log: PathBuf, tail: String },

    #[error(
        "{backend} did not answer within {seconds} s (last try: {last}); its log {} ends with:\n\
         {tail}", log.display()
    )]
    Silent { backend: &'static str, seconds: u64, last: String, log: PathBuf, tail: String },

    #[error("{backend} did not {told}: {reason}")]
    Disobeyed { backend: &'static str, told: &'static str, reason: String },

    #[error("the Redis Cluster was not {awaited} within {seconds} s: {last}")]
    NotFormed { awaited: String, seconds: u64, last: String },

    #[error("found no free loopback port from {first} to {last}; are very many stacks running?")]
    NoPort { first: u16, last: u16 },

    #[error("process {pid} of {name} is still there {seconds} s after SIGKILL; look at it by hand")]
    Unkillable { name: String, pid: i32, seconds: u64 },
}

impl StackError {
    /// For `map_err` after a file operation: `StackError::file("writing", &path)`.
    pub(super) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { doing, path, source }
    }
}
