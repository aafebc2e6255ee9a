//! The window on Redis: stock, holds, buyers' totals. One file per script of `lua/`.
//!
//! Every call may end in an unknown outcome: the script ran, its reply did not arrive. All scripts
//! may be asked again with the same ids.

mod claim_overdue;
mod confirm;
mod connection;
mod error;
mod find_hold;
mod find_holds;
mod keys;
mod next_look;
mod reply;
mod reserve;
mod restore;
mod script;
mod snapshot;
mod warm;

pub use claim_overdue::Overdue;
pub use confirm::ConfirmReply;
pub use error::StockError;
pub use find_hold::{FoundHold, HoldLookup};
pub use find_holds::WatchedHold;
pub use keys::Bucket;
pub use reserve::{Layout, Refusal, ReserveReply, ReserveRequest, Reserved};
pub use restore::{RestoreReply, RestoreRequest};
pub use snapshot::Snapshot;
pub use warm::{BucketPlan, OrderRecord, WarmReply};

use std::time::Duration;

use connection::Connection;
use keys::Keys;
use script::Scripts;

use crate::config;
use crate::domain::Namespace;

/// A handle on the stock of one deployment; cheap to clone. It connects by itself, and again
/// whenever the connection is lost or does not answer.
#[derive(Clone)]
pub struct Stock {
    connection: Connection,
    keys: Keys,
    scripts: &'static Scripts,
    /// After how long an unfinished hold is looked at.
    first_look: Duration,
}

impl Stock {
    /// Begins to connect, and returns at once.
    pub fn connect(config: &config::Redis, namespace: &Namespace) -> Result<Self, StockError> {
        Ok(Self {
            connection: Connection::open(config)?,
            keys: Keys::new(namespace),
            scripts: Scripts::get(),
            first_look: config.first_look(),
        })
    }

    /// Shows that Redis runs scripts.
    pub async fn probe(&self) -> Result<(), StockError> {
        let call = self.scripts.probe.call();
        let reply: String = self.connection.run(call).await?;
        match reply.as_str() {
            "ready" => Ok(()),
            _ => Err(StockError::malformed("probe", &reply)),
        }
    }
}
