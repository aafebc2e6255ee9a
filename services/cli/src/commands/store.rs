//! `lastunit store show`.

use serde::Serialize;
use shared::config::Config;
use shared::config::limits::STORE_UNSEEN;
use shared::domain::{Admission, admit};
use shared::ledger::Ledger;
use shared::stock::Stock;

use crate::args::Output;
use crate::output;

/// What the ledger says of its store, and what Redis says of itself.
#[derive(Serialize)]
struct Shown {
    /// `bound`, `unbound`, `lost`, `waiting` or `misfit`.
    state: &'static str,
    environment: String,
    namespace: String,
    ledger_namespace: Option<String>,
    ledger_store: Option<String>,
    unseen_ms: Option<u64>,
    redis: String,
    redis_store: Option<String>,
}

pub(crate) async fn show(config: &Config, output: Output) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    // Redis first: see `admit`.
    let found = stock.store().await?;
    let binding = ledger.binding().await?;
    let named = binding.store.as_ref();
    let admission = admit(&config.namespace, named, found, STORE_UNSEEN);
    let unseen = named.map(|named| named.unseen_for);
    let shown = Shown {
        state: state(&admission),
        environment: binding.environment.to_string(),
        namespace: config.namespace.to_string(),
        ledger_namespace: named.map(|named| named.namespace.to_string()),
        ledger_store: named.map(|named| named.store.to_string()),
        unseen_ms: unseen.and_then(|unseen| u64::try_from(unseen.as_millis()).ok()),
        redis: config.redis.url.to_string(),
        redis_store: found.map(|found| found.to_string()),
    };
    if output.json {
        return output::json(&shown);
    }
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    output::pairs(vec![
        ("state", format!("{}: {}", shown.state, meaning(&admission))),
        ("environment", shown.environment),
        ("namespace of this command", shown.namespace),
        ("namespace in the ledger", or_none(shown.ledger_namespace)),
        ("store in the ledger", or_none(shown.ledger_store)),
        (
            "last seen",
            unseen
                .map_or("never".to_owned(), |unseen| format!("{:.1} s ago", unseen.as_secs_f32())),
        ),
        ("Redis", shown.redis),
        ("store in Redis", or_none(shown.redis_store)),
    ])
}

fn state(admission: &Admission) -> &'static str {
    match admission {
        Admission::Admitted => "bound",
        Admission::Unbound => "unbound",
        Admission::StoreLost => "lost",
        Admission::Wait => "waiting",
        Admission::Refused(_) => "misfit",
    }
}

fn meaning(admission: &Admission) -> &'static str {
    match admission {
        Admission::Admitted => "this Redis is the one that may sell",
        Admission::Unbound => "nothing has been warmed up yet",
        Admission::StoreLost => "Redis is empty; a reconciler binds a new store",
        Admission::Wait => {
            "Redis is empty and the store was seen just now: it was lost, or this is another Redis"
        }
        Admission::Refused(_) => {
            "this Redis and this ledger do not belong together; services refuse to start"
        }
    }
}
