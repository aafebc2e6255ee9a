//! One connection is one open file, and a crowd has many.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises this process's limit of open files as far as the system allows, and returns it.
pub(crate) fn raise_limit() -> u64 {
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    match setrlimit(Resource::RLIMIT_NOFILE, most, most) {
        Ok(()) => most,
        Err(error) => {
            tracing::warn!(%error, limit = now, "cannot raise the limit of open files");
            now
        }
    }
}
