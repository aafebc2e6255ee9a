//! The three windows that a service looks through, opened together.

use crate::config::Config;
use crate::domain::EnvironmentId;
use crate::gate::{self, Gate, Refused};
use crate::ledger::{Ledger, LedgerError};
use crate::queue::{Publisher, QueueError};
use crate::shutdown::Shutdown;
use crate::stock::{Stock, StockError};

/// One process's handles; cheap to clone.
#[derive(Clone)]
pub struct Backends {
    pub stock: Stock,
    pub publisher: Publisher,
    pub ledger: Ledger,
}

/// Settings that no backend can be reached by. A backend that is only away is not an error.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSettings {
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a service does not work.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Backends {
    /// Begins to connect, and returns at once. `service` is what operators see at the broker.
    pub fn open(config: &Config, service: &str) -> Result<Self, InvalidSettings> {
        let publishing = format!("{service}, publishing");
        Ok(Self {
            stock: Stock::connect(&config.redis, &config.namespace)?,
            publisher: Publisher::connect(&config.rabbitmq, &config.namespace, &publishing)?,
            ledger: Ledger::connect(&config.ledger)?,
        })
    }

    /// Waits until it is clear that ledger and Redis belong together, and says which environment
    /// they are; `None` when told to stop first.
    pub async fn admit(
        &self,
        config: &Config,
        shutdown: &Shutdown,
    ) -> Result<Option<EnvironmentId>, Refused> {
        gate::pass(self.gate(config), shutdown, |_| ()).await
    }

    /// The gate in front of these.
    pub fn gate<'a>(&'a self, config: &'a Config) -> Gate<'a> {
        Gate::new(config, &self.ledger, &self.stock)
    }
}
