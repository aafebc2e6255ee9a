//! Runs the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shared::config::Config;

/// The binary with these settings and no others.
pub(crate) fn lastunit(config: &Config) -> Command {
    let mut command = bare();
    command
        .env("LASTUNIT_NAMESPACE", config.namespace.as_str())
        .env("LASTUNIT_REDIS_URL", config.redis.url.expose())
        .env("LASTUNIT_REDIS_MODE", format!("{:?}", config.redis.mode).to_lowercase())
        .env("LASTUNIT_RABBITMQ_URL", config.rabbitmq.url.expose())
        .env("LASTUNIT_RABBITMQ_PARTITIONS", config.rabbitmq.partitions.to_string())
        .env("LASTUNIT_LEDGER_URL", config.ledger.url.expose());
    command
}

/// The binary with no settings at all, whatever the shell has.
pub(crate) fn bare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastunit"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LASTUNIT_")) {
        command.env_remove(name);
    }
    command
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().expect("the binary runs")
}

/// What it printed, which must be JSON, after it must have succeeded.
pub(crate) fn json(command: &mut Command) -> serde_json::Value {
    let output = run(command);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder of the test's own, gone with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
