//! `lastunit reconcile`: what differs between Redis and the ledger, and its correction.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures_util::stream::{self, StreamExt};
use reconciler::{Address, Mode, ReconcileError, Reconciled, reconcile};
use serde_json::{Value, json};
use shared::backends::Backends;
use shared::config::Config;
use shared::domain::{Cause, ItemId, RequestId};
use shared::ledger::KeptItem;

use crate::args::Output;
use crate::output;
use crate::progress::Progress;

/// Requests that are listed one by one.
const LISTED: usize = 20;

/// Items that are compared side by side.
const ITEMS_AT_ONCE: usize = 8;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct ReconcileArgs {
    /// Items to compare [default: all that Redis has]
    #[arg(value_name = "ITEM")]
    items: Vec<ItemId>,
    /// Only show what differs, and why
    #[arg(long, group = "what")]
    plan: bool,
    /// Correct what differs: the difference is added, under the item's lock, while it is frozen
    #[arg(long, group = "what")]
    apply: bool,
    /// The ledger was restored on purpose: raise what Redis sells although the ledger lacks orders
    #[arg(long, requires = "apply")]
    ledger_restored: bool,
    #[command(flatten)]
    output: Output,
}

type Attempt = (ItemId, Result<Reconciled, ReconcileError>);

/// Exit status 0: everything agrees, or does now.
pub(crate) async fn run(config: &Config, args: ReconcileArgs) -> anyhow::Result<ExitCode> {
    let backends = Backends::open(config, "reconcile")?;
    let environment = backends.ledger.environment().await?;
    let address = Address { environment, partitions: config.rabbitmq.partitions };
    let mode = match (args.apply, args.ledger_restored) {
        (false, _) => Mode::Plan,
        (true, false) => Mode::Apply,
        (true, true) => Mode::ApplyRestoredLedger,
    };
    let items = if args.items.is_empty() {
        let kept = backends.ledger.kept_items(Duration::ZERO).await?;
        let is_warm = |kept: &KeptItem| kept.item.epoch > 0 && !kept.is_over;
        kept.into_iter().filter(is_warm).map(|kept| kept.item.sale.item).collect()
    } else {
        args.items
    };
    let mut progress = Progress::new();
    let bar = progress.count("comparing", items.len() as u64);
    let results: Vec<Attempt> = stream::iter(items)
        .map(async |item| {
            let reconciled = reconcile(&backends, &address, &item, mode).await;
            bar.inc(1);
            (item, reconciled)
        })
        .buffered(ITEMS_AT_ONCE)
        .collect()
        .await;
    progress.done();
    let agree =
        results.iter().filter(|(_, one)| one.as_ref().is_ok_and(Reconciled::agrees)).count();
    if args.output.json {
        output::json(&results.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        for line in results.iter().flat_map(as_lines) {
            output::print(&line)?;
        }
        output::print(&format!("{agree} of {} items agree with the ledger.", results.len()))?;
    }
    backends.ledger.close().await;
    Ok(if agree == results.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json((item, reconciled): &Attempt) -> Value {
    let reconciled = match reconciled {
        Ok(reconciled) => reconciled,
        Err(error) => return json!({ "item": item.to_string(), "error": error.to_string() }),
    };
    let found = &reconciled.found;
    let buyers = found
        .buyers
        .iter()
        .map(|(buyer, units)| json!({ "buyer": buyer.to_string(), "difference": units }));
    json!({
        "item": item.to_string(),
        "agrees": reconciled.agrees(),
        "difference": found.units,
        "corrected": found.added,
        "causes": found_causes(reconciled),
        "unexplained": reconciled.unexplained(),
        "buyers": buyers.collect::<Vec<_>>(),
        "buyers_corrected": found.buyers_corrected,
        "ledger_behind": found.ledger_behind,
        "republished": reconciled.republished,
    })
}

fn found_causes(reconciled: &Reconciled) -> Vec<Value> {
    let one = |(request_id, cause, units): &(RequestId, Cause, i64)| json!({ "request_id": request_id.to_string(), "cause": cause.to_string(), "units": units });
    reconciled.causes.iter().flat_map(|causes| &causes.requests).map(one).collect()
}

fn as_lines((item, reconciled): &Attempt) -> Vec<String> {
    let reconciled = match reconciled {
        Ok(reconciled) => reconciled,
        Err(error) => return vec![format!("{item}: {error}")],
    };
    let found = &reconciled.found;
    let mut lines = Vec::new();
    if found.units != 0 {
        let direction = if found.units > 0 { "too few" } else { "too many" };
        lines.push(format!(
            "{item}: Redis sells {} units {direction}; {} corrected",
            found.units.abs(),
            found.added
        ));
    }
    if let Some(causes) = &reconciled.causes {
        for (request_id, cause, units) in causes.requests.iter().take(LISTED) {
            lines.push(format!("{item}:   {units:+} by request {request_id}: {cause}"));
        }
        let more = causes.count.saturating_sub(LISTED as u64);
        if more > 0 {
            lines.push(format!("{item}:   and {more} more requests; --json lists up to 1,000"));
        }
    }
    if reconciled.unexplained() != 0 {
        lines.push(format!(
            "{item}:   {:+} by no request: Redis was changed from outside, or lost some of its data",
            reconciled.unexplained()
        ));
    }
    for (buyer, units) in &found.buyers {
        let direction = if *units > 0 { "too few" } else { "too many" };
        let done = if found.buyers_corrected { "corrected" } else { "not corrected" };
        lines.push(format!(
            "{item}: buyer {buyer} counts {} units {direction}; {done}",
            units.abs()
        ));
    }
    if found.ledger_behind > 0 {
        lines.push(format!(
            "{item}: the ledger has gone back in time: {} units that Redis knows to be confirmed are not there; {} orders were published again",
            found.ledger_behind, reconciled.republished
        ));
    }
    lines
}
