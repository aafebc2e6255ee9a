//! The window on Redis: stock, holds, buyers' totals. One file per script of `lua/`.
//!
//! Every call may end in an unknown outcome: the script ran, its reply did not arrive. All scripts
//! may be asked again with the same ids.

mod claim_overdue;
mod cluster;
mod confirm;
mod connection;
mod correct;
mod error;
mod find_hold;
mod find_holds;
mod freeze;
mod keys;
mod layouts;
mod lock;
mod lock_lease;
mod lock_scripts;
mod lookout;
mod next_look;
mod node;
mod read_holds;
mod read_records;
mod reply;
mod reserve;
mod restore;
mod retire;
mod scan_confirmed;
mod script;
mod server;
mod short_id;
mod slots;
mod snapshot;
mod snapshot_item;
mod store;
mod terms;
mod totals;
mod transfer;
mod warm;

pub use claim_overdue::{Claimed, Overdue};
pub use confirm::ConfirmReply;
pub use correct::{CorrectReply, Correction, StampReply};
pub use error::StockError;
pub use find_hold::{FoundHold, HoldLookup};
pub use find_holds::WatchedHold;
pub use freeze::{Freeze, FreezeReply};
pub use keys::Bucket;
pub use layouts::Layout;
pub use lock::{LockError, LockRequest};
pub use lock_lease::{ItemLock, LockLost};
pub use lock_scripts::{LockHolder, LockStanding};
pub use read_holds::HoldsPage;
pub use reserve::{Refusal, ReserveReply, ReserveRequest, Reserved};
pub use restore::{RestoreReply, RestoreRequest};
pub use retire::{ForgetLockReply, RetireReply};
pub use scan_confirmed::ConfirmedPage;
pub use server::Server;
pub use snapshot::{Incarnation, Snapshot};
pub use snapshot_item::ItemSnapshot;
pub use store::BindReply;
pub use terms::{Terms, TermsReply};
pub use totals::TotalsPage;
pub use transfer::{InReply, NotNow, OutReply, Transfer};
pub use warm::{BucketPlan, ForgetReply, OrderRecord, WarmReply};

use std::sync::Arc;
use std::time::Duration;

use connection::Connection;
use futures_util::future::join_all;
use keys::Keys;
use layouts::Layouts;
use script::Scripts;

use crate::config;
use crate::domain::Namespace;

/// Keys among which each primary of a cluster finds one that it serves. Evenly spread, a hundred of
/// them serve some two hundred of these each.
const PROBES: u32 = 20_000;

/// A handle on the stock of one deployment; cheap to clone. It connects by itself, and again
/// whenever the connection is lost or does not answer.
#[derive(Clone)]
pub struct Stock {
    connection: Connection,
    keys: Keys,
    scripts: Arc<Scripts>,
    layouts: Layouts,
    /// After how long an unfinished hold is looked at.
    first_look: Duration,
    /// How many replicas must have an item lock before it counts.
    replicas: u8,
}

impl Stock {
    /// Begins to connect, and returns at once.
    pub fn connect(config: &config::Redis, namespace: &Namespace) -> Result<Self, StockError> {
        Ok(Self {
            connection: Connection::open(config)?,
            keys: Keys::new(namespace),
            scripts: Arc::new(Scripts::new(config.checks_incarnation)),
            layouts: Layouts::default(),
            first_look: config.first_look(),
            replicas: config.replicas,
        })
    }

    /// Shows that Redis runs scripts; in a cluster, that every primary runs them on its own slots.
    pub async fn probe(&self) -> Result<(), StockError> {
        let keys = (0..PROBES).map(|number| self.keys.probe(number));
        let keys = self.connection.one_key_each(keys).await?;
        join_all(keys.into_iter().map(|key| self.probe_at(key))).await.into_iter().collect()
    }

    async fn probe_at(&self, key: String) -> Result<(), StockError> {
        let call = self.scripts.probe.call().key(key);
        let reply: String = self.connection.run(call).await?;
        match reply.as_str() {
            "ready" => Ok(()),
            _ => Err(StockError::malformed("probe", &reply)),
        }
    }
}

/// An argument that may be missing.
fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
