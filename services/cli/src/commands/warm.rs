//! `lastunit warm`.

use anyhow::{Context, bail};
use reconciler::Warmed;
use serde_json::json;
use shared::config::Config;
use shared::ledger::Ledger;
use shared::stock::Stock;

use crate::args::WarmArgs;
use crate::output;

/// Warms item after item; one that fails does not keep the others from theirs.
pub(crate) async fn run(config: &Config, args: WarmArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    reconciler::bind_first(config, &ledger, &stock).await.context("nothing is warmed up")?;
    let (mut results, mut failed) = (Vec::new(), 0);
    for item in &args.items {
        match reconciler::warm(&ledger, &stock, item).await.context("cannot warm up") {
            Ok(warmed) if args.output.json => results.push(as_json(item, warmed)),
            Ok(warmed) => output::print(&as_line(item, warmed))?,
            Err(error) => {
                failed += 1;
                eprintln!("lastunit: {item}: {error:#}");
            }
        }
    }
    if args.output.json {
        output::json(&results)?;
    }
    if failed > 0 {
        bail!("{failed} of {} items are not warmed up", args.items.len());
    }
    Ok(())
}

fn as_json(item: &impl ToString, warmed: Warmed) -> serde_json::Value {
    let (outcome, epoch, available) = match warmed {
        Warmed::Built { epoch, available, .. } => ("built", epoch, available),
        Warmed::Live { epoch, available } => ("live", epoch, available),
    };
    json!({ "item": item.to_string(), "outcome": outcome, "epoch": epoch, "available": available })
}

fn as_line(item: &impl ToString, warmed: Warmed) -> String {
    let item = item.to_string();
    match warmed {
        Warmed::Built { epoch, available, orders } => format!(
            "{item} is warmed up: {available} units in Redis (epoch {epoch}, {orders} earlier orders)"
        ),
        Warmed::Live { epoch, available } => {
            format!(
                "{item} is live already and stays as it is: {available} units in Redis (epoch {epoch})"
            )
        }
    }
}
