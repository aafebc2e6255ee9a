//! A private stack, fresh for one run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use redis::AsyncConnectionConfig;
use shared::devstack::{Endpoints, Stack};
use tokio::task::spawn_blocking;

use crate::machine;
use crate::plan::Plan;
use crate::report::Machine;

/// How long emptying Redis may take.
const FLUSHED_WITHIN: Duration = Duration::from_secs(60);

/// Backends of our own. Dropping it kills them.
pub struct Rig {
    stack: Stack,
    pub machine: Machine,
}

/// Whose processors' time is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    Redis,
    RabbitMq,
    PostgreSql,
}

impl Rig {
    /// Starts Redis, RabbitMQ and PostgreSQL in the plan's folder.
    pub async fn start(plan: &Plan) -> anyhow::Result<Self> {
        plan.tell("starting private backends");
        let dir: PathBuf = plan.dir.join("stack");
        let stack = spawn_blocking(move || Stack::start(&dir, &|_| {})).await??;
        let machine = machine::describe(stack.endpoints())
            .await
            .context("cannot ask the backends for their versions")?;
        Ok(Self { stack, machine })
    }

    pub fn endpoints(&self) -> &Endpoints {
        self.stack.endpoints()
    }

    /// Forgets everything that Redis has, so that tables of its own that have grown do not count
    /// for what comes next. Every deployment so far has lost its stock.
    pub async fn flush_redis(&self) -> anyhow::Result<()> {
        let client = redis::Client::open(self.endpoints().redis_url.as_str())?;
        // A million holds take longer to forget than any command of ours.
        let patient = AsyncConnectionConfig::new().set_response_timeout(Some(FLUSHED_WITHIN));
        let mut connection = client.get_multiplexed_async_connection_with_config(&patient).await?;
        let flushed = redis::cmd("FLUSHALL").arg("SYNC").query_async(&mut connection).await;
        flushed.context("cannot empty Redis")
    }

    /// The processes that a backend started itself.
    pub fn pids(&self, server: Server) -> Vec<i32> {
        match server {
            Server::Redis => self.stack.redis.pids(),
            Server::RabbitMq => self.stack.rabbitmq.pids(),
            Server::PostgreSql => self.stack.postgres.pids(),
        }
    }

    /// Lets the backends say goodbye.
    pub async fn stop(self) -> anyhow::Result<()> {
        Ok(spawn_blocking(move || self.stack.stop()).await??)
    }
}
