//! An empty deployment on the rig: a namespace and a database of its own, so that nothing of an
//! earlier round is in its way. Its services are processes of their own, as in production.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use load::client::Client;
use load::known::hears_of;
use redis::aio::MultiplexedConnection;
use shared::config::Config;
use shared::devstack::{Companion, World};
use shared::domain::{BucketCount, EnvironmentId, ItemId, Sale, UnixMillis, Window};
use shared::ledger::Ledger;
use shared::stock::{Bucket, Layout, Stock};
use sqlx::PgPool;
use tokio::task::spawn_blocking;

use crate::clearing;
use crate::plan::Plan;
use crate::rig::Rig;

/// How long a service may take until it is ready, and until it has stopped.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// Dropping it kills its services.
pub struct Deployment {
    pub config: Config,
    pub ledger: Ledger,
    pub stock: Stock,
    /// Which environment its messages have to name.
    pub environment: EnvironmentId,
    /// Past the windows: for baselines, and for looking on without being in the way.
    pub redis: MultiplexedConnection,
    pub database: PgPool,
    services: Vec<Running>,
    started: usize,
    program: PathBuf,
    dir: PathBuf,
    /// A database that is always there, from which this deployment's can be dropped.
    home: String,
}

struct Running {
    name: &'static str,
    companion: Companion,
}

impl Deployment {
    /// A namespace, a migrated database and a bound Redis; no service runs yet.
    pub async fn new(plan: &Plan, rig: &Rig, partitions: u16) -> anyhow::Result<Self> {
        let mut config = World::on(rig.endpoints()).await.config;
        config.rabbitmq.partitions = partitions;
        config.http.listen = free_address()?;
        let ledger = Ledger::connect(&config.ledger)?;
        let stock = Stock::connect(&config.redis, &config.namespace)?;
        let bound = Instant::now() + READY_WITHIN;
        // The connection to Redis may be just about to be made.
        while let Err(error) = reconciler::bind_first(&config, &ledger, &stock).await {
            if Instant::now() >= bound {
                return Err(error).context("cannot bind Redis to the ledger");
            }
            tokio::time::sleep(POLL).await;
        }
        let environment = ledger.binding().await?.environment;
        let redis = redis::Client::open(config.redis.url.expose())?;
        let redis = redis.get_multiplexed_async_connection().await?;
        let database = PgPool::connect_lazy_with(clearing::options(config.ledger.url.expose())?);
        let dir = plan.dir.join(config.namespace.as_str());
        Ok(Self {
            config,
            ledger,
            stock,
            environment,
            redis,
            database,
            services: Vec::new(),
            started: 0,
            program: plan.program.clone(),
            dir,
            home: rig.endpoints().ledger_url.clone(),
        })
    }

    /// A key of a bucket in Redis; what keys look like never changes.
    pub fn key(&self, Bucket { item, number }: &Bucket, what: &str) -> String {
        format!("{}:{{{item}#{number}}}:{what}", self.config.namespace)
    }

    /// Where its ingress answers.
    pub fn address(&self) -> SocketAddr {
        self.config.http.listen
    }

    /// Puts an item on sale and warms it up; says how it is laid out.
    pub async fn sell(
        &self,
        item: &ItemId,
        units: u64,
        limit: Option<u64>,
    ) -> anyhow::Result<Layout> {
        self.sell_from(item, units, limit, BucketCount::ONE).await
    }

    /// The same, from so many buckets.
    pub async fn sell_from(
        &self,
        item: &ItemId,
        units: u64,
        limit: Option<u64>,
        buckets: BucketCount,
    ) -> anyhow::Result<Layout> {
        self.put_in(item, units, limit, buckets).await?;
        reconciler::warm(&self.ledger, &self.stock, item).await?;
        let found = self.stock.snapshot(&Bucket { item: item.clone(), number: 0 }).await?;
        let snapshot = found.with_context(|| format!("{item} has been warmed up and is gone"))?;
        Ok(Layout { epoch: snapshot.epoch, buckets: snapshot.buckets })
    }

    /// Puts an item into the ledger only.
    pub async fn put(&self, item: &ItemId, units: u64, limit: Option<u64>) -> anyhow::Result<()> {
        self.put_in(item, units, limit, BucketCount::ONE).await
    }

    async fn put_in(
        &self,
        item: &ItemId,
        units: u64,
        limit: Option<u64>,
        buckets: BucketCount,
    ) -> anyhow::Result<()> {
        let now = UnixMillis::from(SystemTime::now());
        // Opened a minute ago, so that a small difference between clocks does not matter.
        let opened = UnixMillis(now.0.saturating_sub(60_000));
        let window = Window::new(opened, now.plus(Duration::from_secs(24 * 60 * 60)))?;
        self.ledger
            .put_item(&Sale::new(item.clone(), units, limit, window)?, Some(buckets))
            .await?;
        Ok(())
    }

    /// Starts a service as a process of its own, and returns its pid. Ingress is waited for.
    pub async fn start(&mut self, service: &'static str) -> anyhow::Result<i32> {
        let mut command = Command::new(&self.program);
        command.arg(service);
        // Only what is said here: neither this shell's settings nor a lastunit.toml nearby.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LASTUNIT_")) {
            command.env_remove(name);
        }
        command.envs(self.variables());
        self.started += 1;
        let home = self.dir.join(format!("{service}-{}", self.started));
        std::fs::create_dir_all(&home)?;
        command.current_dir(&home);
        let companion = Companion::start(service, &home, command)?;
        let pid = companion.pid();
        self.services.push(Running { name: service, companion });
        if service == "ingress" {
            self.until_ready().await?;
        }
        Ok(pid)
    }

    /// Stops every service in good order.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        finish(std::mem::take(&mut self.services)).await
    }

    /// Stops every service in good order, and leaves the backends as they were: queues and tables
    /// that nobody uses any more would still cost the next one something.
    pub async fn end(mut self) -> anyhow::Result<()> {
        finish(std::mem::take(&mut self.services)).await?;
        self.ledger.close().await;
        self.database.close().await;
        clearing::clear(&self.config, &self.home).await
    }

    /// The pids of the services of this name.
    pub fn pids(&self, service: &str) -> Vec<i32> {
        let of_name = self.services.iter().filter(|one| one.name == service);
        of_name.map(|one| one.companion.pid()).collect()
    }

    /// Waits until ingress knows an item.
    pub async fn until_known(&self, item: &ItemId) -> anyhow::Result<()> {
        ensure!(
            hears_of(self.address(), item, READY_WITHIN).await,
            "ingress does not learn of {item}"
        );
        Ok(())
    }

    async fn until_ready(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + READY_WITHIN;
        let mut client = Client::new(self.address());
        loop {
            for Running { name, companion } in &mut self.services {
                if let Some(status) = companion.exit_status() {
                    let log = companion.log().display();
                    bail!("{name} ended at once ({status}); see {log}");
                }
            }
            let last = match client.get("/readyz").await {
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

    fn variables(&self) -> [(&'static str, String); 6] {
        let Config { namespace, http, redis, rabbitmq, ledger, .. } = &self.config;
        [
            ("LASTUNIT_NAMESPACE", namespace.to_string()),
            ("LASTUNIT_HTTP_LISTEN", http.listen.to_string()),
            ("LASTUNIT_REDIS_URL", redis.url.expose().to_owned()),
            ("LASTUNIT_RABBITMQ_URL", rabbitmq.url.expose().to_owned()),
            ("LASTUNIT_RABBITMQ_PARTITIONS", rabbitmq.partitions.to_string()),
            ("LASTUNIT_LEDGER_URL", ledger.url.expose().to_owned()),
        ]
    }
}

async fn finish(services: Vec<Running>) -> anyhow::Result<()> {
    for Running { name, companion } in services {
        let log = companion.log().clone();
        let status = spawn_blocking(move || companion.stop(STOPPED_WITHIN)).await??;
        if !status.is_some_and(|status| status.success()) {
            bail!("{name} did not stop in good order; see {}", log.display());
        }
    }
    Ok(())
}

/// An address that is free now. Should somebody take it before its server does, that one says so.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot find a free port")?;
    Ok(listener.local_addr()?)
}
