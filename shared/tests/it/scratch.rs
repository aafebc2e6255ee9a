//! Backends that belong to one test alone, for tests that break them.

use std::fs;
use std::path::PathBuf;

use shared::devstack::{Backend, Recipe};
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// A private backend and its directory, which goes with it.
pub(crate) struct Private<R: Recipe> {
    /// `None` only while it is lent to a blocking call.
    backend: Option<Backend<R>>,
    dir: PathBuf,
}

impl<R: Recipe + 'static> Private<R> {
    pub(crate) async fn start() -> Self {
        let dir = std::env::temp_dir().join(format!("lastunit-it-{}", Uuid::new_v4().simple()));
        fs::create_dir(&dir).expect("a directory");
        let home = dir.clone();
        let started = spawn_blocking(move || Backend::<R>::start(&home)).await.expect("no panic");
        Self { backend: Some(started.expect("a backend")), dir }
    }

    pub(crate) fn backend(&self) -> &Backend<R> {
        self.backend.as_ref().expect("not lent")
    }

    /// What the backend has logged so far.
    pub(crate) fn log(&self) -> String {
        let file = self.dir.join(format!("{}.log", R::NAME));
        String::from_utf8_lossy(&fs::read(file).expect("a log")).into_owned()
    }

    /// Does something that blocks, while the other tasks of the test go on.
    pub(crate) async fn blocking<T: Send + 'static>(
        &mut self,
        action: impl FnOnce(&mut Backend<R>) -> T + Send + 'static,
    ) -> T {
        let mut backend = self.backend.take().expect("not lent");
        let lent = spawn_blocking(move || {
            let result = action(&mut backend);
            (backend, result)
        });
        let (backend, result) = lent.await.expect("no panic");
        self.backend = Some(backend);
        result
    }

    pub(crate) async fn kill(&mut self) {
        self.blocking(Backend::kill).await.expect("killed");
    }

    pub(crate) async fn restart(&mut self) {
        self.blocking(Backend::restart).await.expect("restarted");
    }
}

impl<R: Recipe> Drop for Private<R> {
    fn drop(&mut self) {
        drop(self.backend.take());
        let _ = fs::remove_dir_all(&self.dir);
    }
}
