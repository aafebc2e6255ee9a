//! A whole line: private backends, and every service as a process of its own.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use load::client::Client;
use shared::config::{Config, Sources};
use shared::devstack::{Companion, Stack};
use shared::ledger::Ledger;
use tokio::task::spawn_blocking;

use crate::commands::stack;
use crate::progress::Progress;

/// How long a service may take until it is ready, and until it has stopped.
const READY_WITHIN: Duration = Duration::from_secs(30);
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// Dropping it stops everything that it started.
pub(crate) struct Line {
    services: Vec<Companion>,
    stack: Stack,
    pub(crate) address: SocketAddr,
    pub(crate) consumers: u32,
    pub(crate) config: Config,
}

impl Line {
    /// Starts everything and waits until it can sell.
    pub(crate) async fn start(
        dir: PathBuf,
        consumers: u32,
        progress: &mut Progress,
    ) -> anyhow::Result<Self> {
        progress.step("starting backends");
        let stack_dir = dir.join("stack");
        let stack = spawn_blocking(move || Stack::start(&stack_dir, &|_| {})).await??;
        let address = free_address()?;
        let config = config(&stack, address)?;
        progress.step("starting services");
        Ledger::connect(&config.ledger)?.migrate().await?;
        let mut line = Self { services: Vec::new(), stack, address, consumers, config };
        line.spawn(&dir, "ingress", "ingress".to_owned())?;
        for number in 1..=consumers {
            line.spawn(&dir, "consumer", format!("consumer-{number}"))?;
        }
        line.spawn(&dir, "compensator", "compensator".to_owned())?;
        line.spawn(&dir, "reconciler", "reconciler".to_owned())?;
        line.until_ready().await?;
        Ok(line)
    }

    /// Stops the services, each in good order, then the backends.
    pub(crate) async fn stop(self, progress: &mut Progress) -> anyhow::Result<()> {
        progress.step("stopping");
        let Self { services, stack, .. } = self;
        for service in services {
            let log = service.log().clone();
            let status = spawn_blocking(move || service.stop(STOPPED_WITHIN)).await??;
            if !status.is_some_and(|status| status.success()) {
                bail!("a service did not stop in good order; see {}", log.display());
            }
        }
        spawn_blocking(move || stack.stop()).await??;
        progress.done();
        Ok(())
    }

    fn spawn(&mut self, dir: &Path, service: &'static str, name: String) -> anyhow::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(service);
        // Only what is said here: neither this shell's settings nor a lastunit.toml nearby.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LASTUNIT_")) {
            command.env_remove(name);
        }
        command.envs(stack::variables(self.stack.endpoints()));
        command.env("LASTUNIT_HTTP_LISTEN", self.address.to_string());
        let home = dir.join(name);
        std::fs::create_dir_all(&home)?;
        command.current_dir(&home);
        self.services.push(Companion::start(service, &home, command)?);
        Ok(())
    }

    async fn until_ready(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + READY_WITHIN;
        let mut client = Client::new(self.address);
        loop {
            for service in &mut self.services {
                if let Some(status) = service.exit_status() {
                    bail!("a service ended at once ({status}); see {}", service.log().display());
                }
            }
            let answer = client.get("/readyz").await;
            let last = match answer {
                Ok(response) if response.status.is_success() => return Ok(()),
                Ok(response) => String::from_utf8_lossy(&response.body).into_owned(),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= until {
                bail!("ingress is not ready after {READY_WITHIN:?}: {last}");
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn config(stack: &Stack, address: SocketAddr) -> anyhow::Result<Config> {
    let endpoints = stack.endpoints();
    let flags = vec![
        ("redis.url", endpoints.redis_url.clone()),
        ("rabbitmq.url", endpoints.rabbitmq_url.clone()),
        ("ledger.url", endpoints.ledger_url.clone()),
        ("http.listen", address.to_string()),
    ];
    Ok(shared::config::load(Sources { flags, ..Sources::default() })?)
}

/// An address that is free now. Should somebody take it before ingress does, ingress says so.
fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot find a free port")?;
    Ok(listener.local_addr()?)
}
