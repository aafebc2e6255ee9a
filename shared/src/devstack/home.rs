//! The directory of one backend: one owner at a time, and a record of what that owner started.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::StackError;
use super::process::Leader;

/// How long leftovers of a dead owner may take to stop by themselves.
const LEFTOVER_GRACE: Duration = Duration::from_secs(10);

/// Written as soon as something is spawned, so that a crash one instruction later is findable.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// The owner left the processes running on purpose.
    pub(super) detached: bool,
    /// In the order of their start.
    pub(super) processes: Vec<Leader>,
}

impl Record {
    /// A missing or half-written record names nothing that could be stopped.
    pub(super) fn read(dir: &Path) -> Self {
        let text = fs::read(dir.join("processes.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub(super) fn alive(&self) -> impl DoubleEndedIterator<Item = &Leader> {
        self.processes.iter().filter(|leader| leader.identity.is_alive())
    }

    /// In the reverse order of their start; returns the names of what was really running.
    pub(super) fn stop(&self) -> Result<Vec<String>, StackError> {
        let alive: Vec<&Leader> = self.alive().rev().collect();
        for leader in &alive {
            leader.stop(LEFTOVER_GRACE)?;
        }
        Ok(alive.iter().map(|leader| leader.name.clone()).collect())
    }
}

/// The directory of a backend, held by this process for as long as the value lives.
pub struct Home {
    dir: PathBuf,
    record: Record,
    lock: File,
}

impl Home {
    /// Takes the directory over: fails while somebody else uses it or left a backend running in it
    /// on purpose, and stops what a dead owner left behind.
    pub(super) fn open(backend: &'static str, dir: &Path) -> Result<Self, StackError> {
        let mut home = Self::lock(backend, dir)?;
        if home.record.detached
            && let Some(leader) = home.record.alive().next()
        {
            return Err(StackError::StillRunning {
                backend: leader.name.clone(),
                dir: home.dir.clone(),
            });
        }
        home.record.stop()?;
        home.record = Record::default();
        Ok(home)
    }

    /// Takes the lock, and leaves alone what may run.
    pub(super) fn lock(backend: &'static str, dir: &Path) -> Result<Self, StackError> {
        // Others may pass through (PostgreSQL's account has to, under root) but not look around.
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o711)
            .create(dir)
            .map_err(StackError::file("creating", dir))?;
        let dir = dir.canonicalize().map_err(StackError::file("finding", dir))?;
        let path = dir.join("owner.lock");
        let lock = private(&path).map_err(StackError::file("opening", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { record: Record::read(&dir), dir, lock }),
            Err(TryLockError::WouldBlock) => Err(StackError::InUse { backend, dir }),
            Err(TryLockError::Error(source)) => {
                Err(StackError::File { doing: "locking", path, source })
            }
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(super) fn left_behind(&self) -> &Record {
        &self.record
    }

    /// Readable by this user only: most of what is written here holds a password.
    pub(super) fn write(&self, name: &str, content: &str) -> Result<PathBuf, StackError> {
        let path = self.file(name);
        write_private(&path, content)?;
        Ok(path)
    }

    pub(super) fn record(&mut self, leader: &Leader) -> Result<(), StackError> {
        // A restart replaces the process of the same name.
        self.record.processes.retain(|other| other.name != leader.name);
        self.record.processes.push(leader.clone());
        self.save()
    }

    pub(super) fn mark_detached(&mut self) -> Result<(), StackError> {
        self.record.detached = true;
        self.save()
    }

    pub(super) fn forget(&mut self) -> Result<(), StackError> {
        self.record = Record::default();
        self.save()
    }

    /// By rename, so that a crash leaves the old record or the new one.
    fn save(&self) -> Result<(), StackError> {
        let text = serde_json::to_string_pretty(&self.record).unwrap_or_default();
        let new = self.write("processes.json.new", &text)?;
        fs::rename(&new, self.file("processes.json")).map_err(StackError::file("renaming", &new))
    }
}

/// Said aloud rather than left to closing the file: a child that is just being spawned holds a
/// copy of every descriptor until it executes its program.
impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

pub(super) fn write_private(path: &Path, content: &str) -> Result<(), StackError> {
    let written = private(path).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(content.as_bytes())
    });
    written.map_err(StackError::file("writing", path))
}

fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}
