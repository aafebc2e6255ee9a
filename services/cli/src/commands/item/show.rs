//! `lastunit item show`.

use anyhow::bail;
use serde::Serialize;
use shared::config::Config;
use shared::domain::{Readiness, readiness};
use shared::ledger::Ledger;
use shared::stock::{ItemSnapshot, Snapshot, Stock};

use crate::args::ShowArgs;
use crate::output;

/// An item as it is shown.
#[derive(Serialize)]
struct Shown {
    item: String,
    total: u64,
    limit_per_buyer: Option<u64>,
    opens_at: String,
    closes_at: String,
    confirmed: u64,
    rejected: u64,
    expired: u64,
    ledger_available: u64,
    redis_available: Option<u64>,
    held: Option<u64>,
    /// Units on their way from one bucket to another.
    moving: Option<u64>,
    buckets: u16,
    redis_buckets: Option<u16>,
    epoch: u64,
    redis_epoch: Option<u64>,
    state: &'static str,
    frozen_ms: u128,
    pause_id: Option<String>,
    pause_reason: Option<String>,
    last_finding: Option<String>,
}

/// One word for what it takes until the item sells.
fn state(readiness: Readiness) -> &'static str {
    match readiness {
        Readiness::Live => "live",
        Readiness::Built => "built",
        Readiness::Uncompared => "not_ready",
        Readiness::Outdated => "outdated",
        Readiness::Cold { .. } => "not_warm",
        Readiness::LedgerBehind { .. } => "ledger_behind",
    }
}

pub(crate) async fn show(config: &Config, args: ShowArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    let Some(item) = ledger.find_item(&args.item).await? else {
        bail!("there is no item {}; `lastunit item list` shows all", args.item);
    };
    let orders = ledger.count_orders(&args.item).await?;
    let seen = stock.snapshots(&args.item, item.buckets).await?;
    let standings: Vec<_> =
        seen.iter().map(|bucket| bucket.as_ref().map(Snapshot::standing)).collect();
    let seen: Option<Vec<_>> = seen.into_iter().collect();
    let redis = seen.as_deref().and_then(ItemSnapshot::of);
    let found = ledger.findings(&args.item, 1).await?;
    let shown = Shown {
        item: args.item.to_string(),
        total: item.sale.total,
        limit_per_buyer: item.sale.limit_per_buyer,
        opens_at: item.sale.window.opens_at().to_string(),
        closes_at: item.sale.window.closes_at().to_string(),
        confirmed: orders.confirmed,
        rejected: orders.rejected,
        expired: orders.expired,
        ledger_available: item.available,
        redis_available: redis.as_ref().map(|redis| redis.available),
        held: redis.as_ref().map(|redis| redis.held),
        moving: redis.as_ref().map(|redis| redis.moving),
        buckets: item.buckets.get(),
        redis_buckets: redis.as_ref().map(|redis| redis.buckets.get()),
        epoch: item.epoch,
        redis_epoch: redis.as_ref().map(|redis| redis.epoch),
        state: state(readiness(item.epoch, item.buckets, &standings)),
        frozen_ms: redis.as_ref().map_or(0, |redis| redis.frozen.as_millis()),
        pause_id: item.pause.as_ref().map(|pause| pause.pause_id.to_string()),
        pause_reason: item.pause.map(|pause| pause.reason),
        last_finding: found.first().map(|(at, finding)| {
            format!(
                "{at}: {} differed by {}, {} corrected",
                finding.kind.as_str(),
                finding.difference,
                finding.corrected
            )
        }),
    };
    if args.output.json {
        return output::json(&shown);
    }
    let or_cold = |number: Option<u64>| {
        number.map_or("not warmed up".to_owned(), |number| number.to_string())
    };
    output::pairs(vec![
        ("item", shown.item),
        ("total", shown.total.to_string()),
        ("limit per buyer", shown.limit_per_buyer.map_or("none".to_owned(), |n| n.to_string())),
        ("opens at", shown.opens_at),
        ("closes at", shown.closes_at),
        ("confirmed orders", shown.confirmed.to_string()),
        ("rejected orders", shown.rejected.to_string()),
        ("expired orders", shown.expired.to_string()),
        ("available in the ledger", shown.ledger_available.to_string()),
        ("available in Redis", or_cold(shown.redis_available)),
        ("holds not settled", or_cold(shown.held)),
        ("moving between buckets", or_cold(shown.moving)),
        ("buckets in the ledger", shown.buckets.to_string()),
        ("buckets in Redis", or_cold(shown.redis_buckets.map(u64::from))),
        ("epoch in the ledger", shown.epoch.to_string()),
        ("epoch in Redis", or_cold(shown.redis_epoch)),
        ("state", shown.state.to_owned()),
        (
            "paused",
            match shown.pause_id {
                Some(id) => format!("{} ({id})", shown.pause_reason.unwrap_or_default()),
                None => "no".to_owned(),
            },
        ),
        ("last difference", shown.last_finding.unwrap_or_else(|| "none".to_owned())),
    ])
}
