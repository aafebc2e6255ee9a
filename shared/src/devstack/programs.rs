//! Where the machine's own programs are, and a clean environment to run them in.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::StackError;

/// Looked at after PATH. Debian keeps the scripts of RabbitMQ and the programs of PostgreSQL out
/// of PATH; compose/install-backends.sh looks at the same places.
const USUAL_PLACES: [&str; 9] = [
    "/usr/lib/rabbitmq/bin",
    "/usr/sbin",
    "/usr/bin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    "/opt/homebrew/sbin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/home/linuxbrew/.linuxbrew/sbin",
];
/// (parent, prefix of the version's folder, folder with the programs)
const POSTGRES_PLACES: [(&str, &str, &str); 4] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
];

/// Where a program is; `package` tells people what to install.
pub fn find(program: &'static str, package: &'static str) -> Result<PathBuf, StackError> {
    let found = places().into_iter().map(|place| place.join(program)).find(|path| path.is_file());
    found.ok_or(StackError::ProgramMissing { program, package })
}

/// The folder in which `program` really lies (links followed), beside all of `companions`.
///
/// What PATH finds may be a front for the real thing: Debian's `rabbitmq-server` insists on the
/// users root or rabbitmq, and its `psql` is a script that guesses a cluster.
pub(super) fn folder_of(
    program: &'static str,
    companions: &[&str],
    package: &'static str,
) -> Result<PathBuf, StackError> {
    let real_folder = |folder: PathBuf| {
        let program = folder.join(program).canonicalize().ok()?;
        program.parent().map(Path::to_owned)
    };
    places()
        .into_iter()
        // Twice, because a front lies beside a link to the real thing.
        .filter_map(|place| real_folder(real_folder(place)?))
        .find(|folder| companions.iter().all(|other| folder.join(other).is_file()))
        .ok_or(StackError::ProgramMissing { program, package })
}

/// Only what a program needs to be found and to write temporary files: a `RABBITMQ_NODENAME`,
/// `ERL_FLAGS` or `PGHOST` of the caller must not leak into the private stack.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LANG", "C.UTF-8");
    for name in ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TZ"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    if let Ok(path) = env::join_paths(places()) {
        command.env("PATH", path);
    }
    command
}

/// Runs a program to its end; anything but success is an error that shows what it printed.
pub(super) fn run(doing: &str, command: &mut Command) -> Result<String, StackError> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(|source| StackError::Spawn { program, source })?;
    let Output { status, stdout, stderr } = output;
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    if status.success() {
        return Ok(stdout);
    }
    let output = format!("{stdout}{}", String::from_utf8_lossy(&stderr)).trim().to_owned();
    Err(StackError::Tool { doing: doing.to_owned(), status, output })
}

fn places() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    places.extend(USUAL_PLACES.map(PathBuf::from));
    for (parent, prefix, bin) in POSTGRES_PLACES {
        let mut versions = versions_in(parent, prefix);
        versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        places.extend(versions.into_iter().map(|(_, folder)| folder.join(bin)));
    }
    places
}

fn versions_in(parent: &str, prefix: &str) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let version_of = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let version = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
        Some((version, entry.path()))
    };
    entries.flatten().filter_map(version_of).collect()
}
