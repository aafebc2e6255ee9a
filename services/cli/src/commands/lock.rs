//! `lastunit lock show`.

use anyhow::bail;
use serde::Serialize;
use shared::config::Config;
use shared::ledger::Ledger;
use shared::stock::{LockStanding, Stock};

use crate::args::ShowArgs;
use crate::output;

/// A lock as it is shown.
#[derive(Serialize)]
struct Shown {
    item: String,
    state: &'static str,
    holder: Option<String>,
    purpose: Option<String>,
    since: Option<String>,
    lease_left_ms: Option<u64>,
    waiting: u32,
    /// The last one that was given out.
    fence: u64,
    ledger_fence: u64,
}

pub(crate) async fn show(config: &Config, args: ShowArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    let Some(ledger_fence) = ledger.fence(&args.item).await? else {
        bail!("there is no item {}; `lastunit item list` shows all", args.item);
    };
    let item = args.item.to_string();
    let shown = match stock.show_lock(&args.item).await? {
        LockStanding::Free { fence } => Shown {
            item,
            state: "free",
            holder: None,
            purpose: None,
            since: None,
            lease_left_ms: None,
            waiting: 0,
            fence,
            ledger_fence,
        },
        LockStanding::Held(holder) => Shown {
            item,
            state: "held",
            holder: Some(holder.holder),
            purpose: Some(holder.purpose),
            since: Some(holder.since.to_string()),
            lease_left_ms: u64::try_from(holder.left.as_millis()).ok(),
            waiting: holder.waiting,
            fence: holder.fence,
            ledger_fence,
        },
    };
    if args.output.json {
        return output::json(&shown);
    }
    let or_nobody = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    output::pairs(vec![
        ("item", shown.item),
        ("lock", shown.state.to_owned()),
        ("held by", or_nobody(shown.holder)),
        ("for", or_nobody(shown.purpose)),
        ("since", or_nobody(shown.since)),
        ("lease left", or_nobody(shown.lease_left_ms.map(|left| format!("{left} ms")))),
        ("waiting", shown.waiting.to_string()),
        ("fence in Redis", shown.fence.to_string()),
        ("fence in the ledger", shown.ledger_fence.to_string()),
    ])
}
