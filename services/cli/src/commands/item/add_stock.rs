//! `lastunit item add-stock`: the ledger has the units first, Redis follows by a correction.

use anyhow::{Context, bail};
use clap::Args;
use reconciler::{Address, CompareError, Mode, ReconcileError, reconcile};
use serde_json::json;
use shared::backends::Backends;
use shared::config::Config;
use shared::domain::{ItemId, Sale};
use shared::ledger::Added;
use uuid::Uuid;

use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct AddStockArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    /// Units to add, 1–1,000,000,000
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=Sale::MAX_TOTAL))]
    units: u64,
    /// Id of the addition, to run the same command again: it adds once [default: a new one]
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn add_stock(config: &Config, args: AddStockArgs) -> anyhow::Result<()> {
    let AddStockArgs { item, units, .. } = &args;
    let id = args.id.unwrap_or_else(Uuid::new_v4);
    if args.id.is_none() {
        eprintln!(
            "This is addition {id}. Should this command be interrupted, run it again with --id {id}"
        );
    }
    let backends = Backends::open(config, "item add-stock")?;
    let (row, outcome) = match backends.ledger.add_stock(item, id, *units).await? {
        Added::Added(row) => (row, "added"),
        Added::Already(row) => (row, "already"),
        Added::UnknownItem => bail!("there is no item {item}; `lastunit item list` shows all"),
        Added::TooMany(row) => bail!(
            "{item} has {} units; with {units} more it would have over {}",
            row.sale.total,
            Sale::MAX_TOTAL
        ),
        Added::OtherAddition => bail!(
            "addition {id} was made with another item or number of units; leave --id out for a new one"
        ),
    };
    let environment = backends.ledger.environment().await?;
    let address = Address { environment, partitions: config.rabbitmq.partitions };
    let in_redis = match reconcile(&backends, &address, item, Mode::Apply).await {
        Ok(reconciled) => {
            Some(reconciled.numbers.available.saturating_add_signed(reconciled.found.added))
        }
        Err(ReconcileError::Compare(CompareError::NotLive(_))) => None,
        Err(error) => Err(error).with_context(|| {
            format!("the ledger has the units of {item}, Redis does not yet; the reconciler follows, or `lastunit reconcile {item} --apply`")
        })?,
    };
    if args.output.json {
        return output::json(&json!({
            "item": item.to_string(),
            "addition": id.to_string(),
            "outcome": outcome,
            "total": row.sale.total,
            "ledger_available": row.available,
            "redis_available": in_redis,
        }));
    }
    let done = if outcome == "added" { "got" } else { "had got already" };
    output::print(&format!(
        "{item} {done} {units} units: {} in total, {} available in the ledger, {}",
        row.sale.total,
        row.available,
        in_redis.map_or("not in Redis, where its warm-up brings them".to_owned(), |units| format!(
            "{units} in Redis"
        )),
    ))
}
