//! `lastunit warm`.

use std::time::Instant;

use anyhow::{Context, bail};
use futures_util::stream::{self, StreamExt};
use reconciler::{Warmed, until_drained, warm};
use serde_json::{Value, json};
use shared::config::Config;
use shared::domain::ItemId;
use shared::ledger::Ledger;
use shared::stock::Stock;

use crate::args::WarmArgs;
use crate::output;
use crate::progress::Progress;

/// Items that are warmed up side by side.
const ITEMS_AT_ONCE: usize = 8;

/// More items than this are counted, not listed one by one.
const LISTED: usize = 20;

type Attempt = (ItemId, Result<Warmed, String>);

/// Warms items up; one that fails does not keep the others from theirs.
pub(crate) async fn run(config: &Config, args: WarmArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    reconciler::bind_first(config, &ledger, &stock).await.context("nothing is warmed up")?;
    let items = if args.all { ledger.warmable_items().await? } else { args.items };
    let began = Instant::now();
    let mut progress = Progress::new();
    let bar = progress.count("warming up", items.len() as u64);
    until_drained(config, &ledger, &stock, &items, |lost| {
        eprintln!(
            "Redis may have forgotten sales of {lost} items: waiting until what was reserved earlier is decided"
        );
    })
    .await?;
    let results: Vec<Attempt> = stream::iter(items)
        .map(async |item| {
            let warmed = warm(&ledger, &stock, &item).await;
            bar.inc(1);
            (item, warmed.map_err(|error| format!("{error:#}")))
        })
        .buffered(ITEMS_AT_ONCE)
        .collect()
        .await;
    progress.done();
    let failed = results.iter().filter(|(_, warmed)| warmed.is_err()).count();
    for (item, warmed) in &results {
        if let Err(error) = warmed {
            eprintln!("lastunit: {item}: cannot warm up: {error}");
        }
    }
    if args.output.json {
        output::json(&results.iter().filter_map(as_json).collect::<Vec<_>>())?;
    } else if results.len() <= LISTED {
        for line in results.iter().filter_map(as_line) {
            output::print(&line)?;
        }
    } else {
        let live = results.iter().filter(|(_, one)| matches!(one, Ok(Warmed::Live { .. }))).count();
        output::print(&format!(
            "{} items are warm, {live} of them were so before; it took {:.1} s.",
            results.len() - failed,
            began.elapsed().as_secs_f64(),
        ))?;
    }
    if failed > 0 {
        bail!("{failed} of {} items are not warmed up", results.len());
    }
    Ok(())
}

fn as_json((item, warmed): &Attempt) -> Option<Value> {
    let (outcome, epoch, available) = match warmed.as_ref().ok()? {
        Warmed::Built { epoch, available, .. } => ("built", epoch, Some(available)),
        Warmed::Opened { epoch, available } => ("opened", epoch, Some(available)),
        Warmed::Recovered { epoch, .. } => ("recovered", epoch, None),
        Warmed::Live { epoch, available } => ("live", epoch, Some(available)),
    };
    Some(
        json!({ "item": item.to_string(), "outcome": outcome, "epoch": epoch, "available": available }),
    )
}

fn as_line((item, warmed): &Attempt) -> Option<String> {
    Some(match warmed.as_ref().ok()? {
        Warmed::Built { epoch, available, orders } => format!(
            "{item} is warmed up: {available} units in Redis (epoch {epoch}, {orders} earlier orders)"
        ),
        Warmed::Opened { epoch, available } => format!(
            "{item} was built before and is open now: {available} units in Redis (epoch {epoch})"
        ),
        Warmed::Recovered { epoch, corrected } => format!(
            "{item} sells again after Redis restarted: corrected by {corrected} units (epoch {epoch})"
        ),
        Warmed::Live { epoch, available } => format!(
            "{item} is live already and stays as it is: {available} units in Redis (epoch {epoch})"
        ),
    })
}
