//! A process that has an item's lock, and may be frozen, killed and asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use shared::config::Config;
use shared::devstack::Companion;
use shared::domain::ItemId;
use shared::ledger::Ledger;
use shared::stock::Stock;

use crate::settings::tell_settings;

/// In front of the address in the holder's log.
const ANSWERS_AT: &str = "has the lock, answers at ";

/// The process itself: takes the lock, and tells everybody who connects what `check` says just then.
pub async fn hold(config: &Config, item: &ItemId, lease: Duration) -> anyhow::Result<()> {
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    let ledger = Ledger::connect(&config.ledger)?;
    let lock = reconciler::lock_item(&stock, &ledger, item, "trial", lease).await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{ANSWERS_AT}{}", listener.local_addr()?);
    // On a thread of its own: it answers whatever the tasks of the lock are doing.
    let answering = tokio::task::spawn_blocking(move || {
        for asked in listener.incoming() {
            let answer = match lock.check() {
                Ok(()) => format!("has it under fence {}", lock.fence()),
                Err(lost) => lost.to_string(),
            };
            write!(asked?, "{answer}")?;
        }
        Ok(())
    });
    answering.await?
}

/// The process, as a trial sees it.
pub struct Holder {
    process: Companion,
    address: Option<SocketAddr>,
}

impl Holder {
    /// Starts one. `program` is the binary `trial`.
    pub fn start(program: &Path, dir: &Path, config: &Config, item: &str, lease: Duration) -> Self {
        let mut command = Command::new(program);
        command.args(["hold-lock", item, "--lease-ms", &lease.as_millis().to_string()]);
        tell_settings(&mut command, config);
        command.current_dir(dir);
        let process = Companion::start("holder", dir, command).expect("a process");
        Self { process, address: None }
    }

    /// True once it has the lock.
    pub fn has_begun(&mut self) -> bool {
        let log = std::fs::read_to_string(self.process.log()).unwrap_or_default();
        let line = log.lines().find_map(|line| line.strip_prefix(ANSWERS_AT));
        self.address = line.and_then(|address| address.parse().ok());
        self.address.is_some()
    }

    /// Asks whether it has the lock. A frozen one gets the question, and answers when it wakes.
    pub fn ask(&self) -> Question {
        let address = self.address.expect("it has begun");
        Question(TcpStream::connect(address).expect("the kernel takes the question"))
    }

    pub fn freeze(&self) {
        self.process.pause();
    }

    pub fn thaw(&self) {
        self.process.resume();
    }

    pub fn kill(self) {
        self.process.kill().expect("killed");
    }
}

/// A question that may still be on its way.
pub struct Question(TcpStream);

impl Question {
    /// Blocks until it is answered.
    pub fn answer(mut self) -> String {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).expect("an answer");
        answer
    }
}
