//! A world of its own for a test on the shared stack: a namespace, a database, nothing of anybody
//! else's.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Endpoints, Stack};
use crate::config::{Config, Sources, load};
use crate::ledger::Ledger;

/// Settings of one test. What it leaves behind goes with the stack.
pub struct World {
    pub config: Config,
}

/// Set by `lastunit stack exec`.
const STACK: &str = "LASTUNIT_STACK";

impl World {
    /// A world on the stack that `make test` starts, or that `make up` left running.
    ///
    /// # Panics
    ///
    /// When there is no stack, with what to do about it.
    pub async fn new() -> Self {
        Self::on(&shared_stack()).await
    }

    /// A world on a stack of the test's own.
    ///
    /// # Panics
    ///
    /// When the stack does not answer.
    pub async fn on(endpoints: &Endpoints) -> Self {
        let namespace = format!("t-{}", &Uuid::new_v4().simple().to_string()[..12]);
        let flags = vec![
            ("namespace", namespace),
            ("http.listen", "127.0.0.1:0".to_owned()),
            ("redis.url", endpoints.redis_url.clone()),
            ("rabbitmq.url", endpoints.rabbitmq_url.clone()),
            // Two show everything that many would, and cost a broker less.
            ("rabbitmq.partitions", "2".to_owned()),
            ("ledger.url", endpoints.ledger_url.clone()),
        ];
        let mut config = load(Sources { flags, ..Sources::default() }).expect("good settings");
        config.ledger = Ledger::scratch(&config.ledger).await.expect("a database of its own");
        Self { config }
    }
}

fn shared_stack() -> Endpoints {
    if let Ok(endpoints) = std::env::var(STACK) {
        return serde_json::from_str(&endpoints).expect("what `lastunit stack exec` has set");
    }
    let dir = workspace().join(".lastunit/stack");
    match Stack::running(&dir) {
        Ok(Some(endpoints)) => endpoints,
        _ => {
            panic!("no stack runs: `make test` runs the tests on one, `make up` leaves one running")
        }
    }
}

/// Where the root `Cargo.toml` is.
fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("this crate is one level down").to_owned()
}
