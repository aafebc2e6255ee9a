//! `lastunit item rebucket`: divides an item into another number of buckets while it is on sale.

use anyhow::Context;
use clap::Args;
use serde_json::json;
use shared::config::Config;
use shared::domain::{BucketCount, ItemId};
use shared::ledger::Ledger;
use shared::stock::Stock;

use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct RebucketArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    /// How many buckets it has from now on, 1–64
    buckets: BucketCount,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn rebucket(config: &Config, args: RebucketArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    let done = reconciler::rebucket(&ledger, &stock, &args.item, args.buckets).await;
    let done = done.with_context(|| format!("cannot divide {} anew", args.item))?;
    let paused_ms = done.paused.as_secs_f64() * 1_000.0;
    if args.output.json {
        return output::json(&json!({
            "item": args.item.to_string(),
            "from": done.from.get(),
            "to": done.to.get(),
            "epoch": done.epoch,
            "available": done.available,
            "paused_ms": paused_ms,
        }));
    }
    if done.from == done.to {
        return output::print(&format!("{} has {} already.", args.item, buckets(done.to)));
    }
    output::print(&format!(
        "{} has {} now, it had {}: epoch {}, {} units available, nobody could buy for {paused_ms:.1} ms.",
        args.item,
        buckets(done.to),
        done.from,
        done.epoch,
        done.available,
    ))
}

fn buckets(count: BucketCount) -> String {
    if count == BucketCount::ONE { "1 bucket".to_owned() } else { format!("{count} buckets") }
}
