//! Backends of a test's own: they may be killed, because nobody else uses them.

use std::fs;
use std::path::{Path, PathBuf};

use shared::devstack::{Redis, Stack};
use uuid::Uuid;

/// A directory that vanishes with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty one.
    pub fn create() -> Self {
        let name = format!("lastunit-trials-{}", Uuid::new_v4().simple());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).expect("a directory of its own");
        Self(dir.canonicalize().expect("the directory that was just created"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All three backends.
pub struct Own<T> {
    // Dropped in this order: first what runs, then where it ran.
    pub backend: T,
    _scratch: Scratch,
}

/// A stack of the test's own. Blocks for about three seconds, so it leaves the other tests their
/// thread.
pub fn own_stack() -> Own<Stack> {
    tokio::task::block_in_place(|| {
        let scratch = Scratch::create();
        let backend = Stack::start(&scratch.0, &|_| ()).expect("a stack of its own");
        Own { backend, _scratch: scratch }
    })
}

/// An empty Redis of the test's own; starts in a few milliseconds.
pub fn own_redis() -> Own<Redis> {
    tokio::task::block_in_place(|| {
        let scratch = Scratch::create();
        let backend = Redis::start(&scratch.0).expect("a Redis of its own");
        Own { backend, _scratch: scratch }
    })
}
