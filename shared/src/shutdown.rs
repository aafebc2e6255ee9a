//! How a process stops: first it takes nothing new and finishes what it has begun, then, after a
//! bound, it gives up. Whatever is given up is finished by somebody else.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::config::limits::SHUTDOWN_GRACE;

/// The two steps of stopping; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Take nothing new.
    pub stop: CancellationToken,
    /// Do not wait any longer, not even for what has begun.
    pub give_up: CancellationToken,
}

impl Shutdown {
    /// Stops on SIGTERM or SIGINT (Ctrl-C); a second signal gives up at once.
    pub fn on_signals() -> std::io::Result<Self> {
        let shutdown = Self::default();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let on_signal = shutdown.clone();
        tokio::spawn(async move {
            any(&mut terminate, &mut interrupt).await;
            tracing::info!(grace = ?SHUTDOWN_GRACE, "stopping; another signal stops at once");
            on_signal.begin(SHUTDOWN_GRACE);
            any(&mut terminate, &mut interrupt).await;
            on_signal.give_up.cancel();
        });
        Ok(shutdown)
    }

    /// A part of this one: it stops with it, and can be stopped alone.
    pub fn child(&self) -> Self {
        Self { stop: self.stop.child_token(), give_up: self.give_up.child_token() }
    }

    /// Stops now, and gives up after `grace`.
    pub fn begin(&self, grace: Duration) {
        self.stop.cancel();
        let give_up = self.give_up.clone();
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            give_up.cancel();
        });
    }
}

async fn any(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
