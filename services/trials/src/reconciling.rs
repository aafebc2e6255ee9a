//! Whoever compares items with the ledger: within a trial, or as a process that stands still in the
//! middle of a correction.

use std::path::Path;
use std::process::Command;

use reconciler::{Address, Mode, ReconcileError, Reconciled, reconcile};
use shared::backends::Backends;
use shared::config::Config;
use shared::devstack::Companion;
use shared::domain::ItemId;
use shared::ledger::Ledger;

use crate::settings::tell_settings;

/// Compares items, with connections of its own.
#[derive(Clone)]
pub struct Clerk {
    backends: Backends,
    address: Address,
}

impl Clerk {
    pub async fn of(config: &Config) -> Self {
        let ledger = Ledger::connect(&config.ledger).expect("a ledger");
        let environment = ledger.environment().await.expect("the ledger");
        let backends = Backends::open(config, "trial").expect("good settings");
        let address = Address { environment, partitions: config.rabbitmq.partitions };
        Self { backends, address }
    }

    /// Once, as a reconciler does.
    pub async fn reconcile(&self, item: &ItemId, mode: Mode) -> Result<Reconciled, ReconcileError> {
        reconcile(&self.backends, &self.address, item, mode).await
    }
}

/// In front of how it ended, in the log of the process.
const ENDED: &str = "ended: ";

/// The process itself: corrects once, and tells how it ended.
pub async fn correct_once(config: &Config, item: &ItemId) -> String {
    match Clerk::of(config).await.reconcile(item, Mode::Apply).await {
        Ok(Reconciled { found, .. }) => {
            format!("{ENDED}corrected {} of {}", found.added, found.units)
        }
        Err(error) => format!("{ENDED}{error}"),
    }
}

/// The process, as a trial sees it.
pub struct Reconciling(Companion);

impl Reconciling {
    /// Starts one that stands still at this point. `program` is the binary `trial`.
    pub fn start(program: &Path, dir: &Path, config: &Config, item: &ItemId, point: &str) -> Self {
        let mut command = Command::new(program);
        command.args(["reconcile", item.as_str()]);
        tell_settings(&mut command, config);
        command.current_dir(dir).env_remove("CRASH_AT").env("STOP_AT", point);
        Self(Companion::start("reconciling", dir, command).expect("a process"))
    }

    /// True once it stands still.
    pub fn stands_still(&self) -> bool {
        self.said().contains("stops at ")
    }

    pub fn resume(&self) {
        self.0.resume();
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<String> {
        self.said().lines().find_map(|line| line.strip_prefix(ENDED)).map(str::to_owned)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.0.log()).unwrap_or_default()
    }
}
