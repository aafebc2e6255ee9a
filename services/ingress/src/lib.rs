//! Ingress: HTTP → reserve → publish. Run as many as you like.
//!
//! | file | step |
//! |---|---|
//! | [`http`] | requests become values, answers become responses |
//! | [`catalog`] | which items exist, read off the purchase path |
//! | [`purchase`] | one purchase: reserve, then publish, then answer |
//! | [`reserving`] | requests of one bucket gather into one script call |
//! | [`gathering`] | a bucket that is short gets units from the item's others |
//! | [`publishing`] | reservations of one partition gather into one message |
//! | [`surviving`] | a client that hangs up changes nothing |
//! | [`lookup`] | how a purchase stands: Redis, then the ledger |
//!
//! Nothing on the purchase path touches the ledger.

mod catalog;
mod gathering;
mod http;
mod lookup;
mod publishing;
mod purchase;
mod reserving;
mod surviving;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::ListenerExt;
use shared::backends::{Backends, InvalidSettings};
use shared::config::Config;
use shared::config::limits::SHUTDOWN_GRACE;
use shared::gate::{self, Refused};
use shared::queue::Publisher;
use shared::shutdown::Shutdown;
use shared::stock::Stock;
use shared::telemetry::metrics;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;
use crate::lookup::Lookup;
use crate::publishing::Publishing;
use crate::purchase::Purchases;
use crate::reserving::Reserving;

/// Why ingress does not start, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("cannot listen on {address}: {source}; http.listen sets another address")]
    Listen { address: SocketAddr, source: io::Error },
}

/// Everything that answering needs; one per process.
pub(crate) struct Ingress {
    pub(crate) catalog: Catalog,
    pub(crate) stock: Stock,
    pub(crate) publisher: Publisher,
    pub(crate) purchases: Purchases,
    pub(crate) lookup: Lookup,
    /// Purchases that are under way and whose clients do not wait any more.
    pub(crate) tasks: TaskTracker,
}

/// Answers until it is told to stop, through every loss of Redis, RabbitMQ and the ledger.
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), StartError> {
    metrics::init();
    let address = config.http.listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| StartError::Listen { address, source })?;
    let backends = Backends::open(config, "ingress")?;
    // Of its own, so that a refusal ends this service and no other of the process.
    let shutdown = shutdown.child();
    let catalog = Catalog::unread();
    let admission =
        tokio::spawn(admit(config.clone(), backends.clone(), catalog.clone(), shutdown.clone()));
    let Backends { stock, publisher, ledger } = backends;
    let reserving = Reserving::new(stock.clone());
    let publishing = Publishing::new(publisher.clone(), config.rabbitmq.partitions);
    let ingress = Arc::new(Ingress {
        purchases: Purchases { catalog: catalog.clone(), reserving, publishing },
        lookup: Lookup { stock: stock.clone(), ledger: ledger.clone() },
        catalog,
        stock,
        publisher,
        tasks: TaskTracker::new(),
    });

    tracing::info!("listening on http://{}", listener.local_addr().unwrap_or(address));
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
    });
    let stop = shutdown.stop.clone();
    let serving = axum::serve(listener, http::router(Arc::clone(&ingress)))
        .with_graceful_shutdown(async move { stop.cancelled().await });
    tokio::select! {
        served = serving => served.map_err(|source| StartError::Listen { address, source })?,
        () = shutdown.give_up.cancelled() => tracing::warn!("some clients did not get their answer"),
    }
    ingress.tasks.close();
    tokio::select! {
        () = ingress.tasks.wait() => {}
        () = shutdown.give_up.cancelled() => tracing::warn!("some purchases were left half-way; a repeat finishes them"),
    }
    let admitted = admission.await;
    ledger.close().await;
    tracing::info!("stopped answering");
    // A panic of the task is one of this service.
    Ok(admitted.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?)
}

/// Beside the listener: ingress answers while its backends are away, and sells nothing before it is
/// clear that they belong together. A refusal ends it.
async fn admit(
    config: Config,
    backends: Backends,
    catalog: Catalog,
    shutdown: Shutdown,
) -> Result<(), Refused> {
    let refused = |refused: &Refused| {
        catalog.excuse(refused.to_string());
        shutdown.begin(SHUTDOWN_GRACE);
    };
    let on_wait = |reason: &str| catalog.excuse(reason.to_owned());
    let environment = gate::pass(backends.gate(&config), &shutdown, on_wait).await;
    let Some(_) = environment.inspect_err(refused)? else { return Ok(()) };
    let (declared, ()) = tokio::join!(
        async { gate::declare(&config, "ingress", &shutdown).await.inspect_err(refused) },
        catalog.follow(&backends.ledger, &shutdown.stop),
    );
    declared
}
