//! `lastunit ingress | consumer | compensator | reconciler | all`: run until told to stop.

use anyhow::Context;
use shared::config::Config;
use shared::config::limits::SHUTDOWN_GRACE;
use shared::shutdown::Shutdown;
use shared::telemetry::expose;
use tokio::task::JoinSet;

/// What can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Ingress,
    Consumer,
    Compensator,
    Reconciler,
}

impl Service {
    pub(crate) const ALL: [Self; 4] =
        [Self::Ingress, Self::Consumer, Self::Compensator, Self::Reconciler];

    async fn run(self, config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
        match self {
            Self::Ingress => ingress::run(&config, shutdown).await?,
            Self::Consumer => consumer::run(&config, shutdown).await?,
            Self::Compensator => compensator::run(&config, shutdown).await?,
            Self::Reconciler => reconciler::run(&config, shutdown).await?,
        }
        Ok(())
    }
}

/// Runs services side by side. When one cannot go on, the others stop in good order.
pub(crate) async fn run(config: &Config, services: &[Service]) -> anyhow::Result<()> {
    crate::open_files::raise_limit();
    expose(&config.metrics).await?;
    let shutdown = Shutdown::on_signals().context("cannot listen for signals")?;
    let mut running = JoinSet::new();
    for service in services.iter().copied() {
        let (config, shutdown) = (config.clone(), shutdown.clone());
        running.spawn(async move {
            let name = format!("{service:?}").to_lowercase();
            service.run(config, shutdown).await.with_context(|| format!("{name} cannot run"))
        });
    }
    let mut first_error = Ok(());
    while let Some(ended) = running.join_next().await {
        let ended = ended.context("a service panicked").and_then(|ended| ended);
        if ended.is_err() && first_error.is_ok() {
            first_error = ended;
            shutdown.begin(SHUTDOWN_GRACE);
        }
    }
    first_error
}
