//! `lastunit item pause | resume | end`: the ledger first, then Redis.

use anyhow::bail;
use clap::Args;
use serde_json::json;
use shared::config::Config;
use shared::domain::ItemId;
use shared::ledger::{Changed, Item, Ledger, Pause};
use shared::stock::Stock;
use uuid::Uuid;

use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    /// Why; shown to whoever looks at the item
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Id of the pause, to run the same command again [default: a new one]
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    /// Id of the pause to end: `item pause` has printed it, `item show` shows it
    #[arg(long, value_name = "UUID")]
    id: Uuid,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn pause(config: &Config, args: PauseArgs) -> anyhow::Result<()> {
    let id = args.id.unwrap_or_else(Uuid::new_v4);
    let ledger = Ledger::connect(&config.ledger)?;
    let changed = ledger.pause(&args.item, id, &args.reason).await?;
    let item = of_change(changed, &args.item)?;
    let told = format!(
        "{} is paused: nobody can buy, what is accepted goes on. Next: lastunit item resume {} --id {id}",
        args.item, args.item,
    );
    finish(config, &ledger, args.output, &item, &told).await
}

pub(crate) async fn resume(config: &Config, args: ResumeArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let changed = ledger.resume(&args.item, args.id).await?;
    let item = of_change(changed, &args.item)?;
    finish(config, &ledger, args.output, &item, &format!("{} sells again.", args.item)).await
}

pub(crate) async fn end(config: &Config, args: EndArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let changed = ledger.end_sale(&args.item).await?;
    let item = of_change(changed, &args.item)?;
    let told = format!(
        "The sale of {} is over since {}; what is accepted goes on. `lastunit item put {} --closes-at TIME` opens it again.",
        args.item,
        item.sale.window.closes_at(),
        args.item,
    );
    finish(config, &ledger, args.output, &item, &told).await
}

fn of_change(changed: Changed, item: &ItemId) -> anyhow::Result<Item> {
    match changed {
        Changed::Changed(item) | Changed::Already(item) => Ok(item),
        Changed::UnknownItem => bail!("there is no item {item}; `lastunit item list` shows all"),
        Changed::OtherPause(found) => {
            let Pause { pause_id, reason } = found.pause.unwrap_or_default();
            bail!(
                "{item} is under another pause ({reason}); only its own id ends it: lastunit item resume {item} --id {pause_id}"
            )
        }
    }
}

/// Redis is told even when the ledger knew already: an earlier run may have died in between.
async fn finish(
    config: &Config,
    ledger: &Ledger,
    output: Output,
    item: &Item,
    told: &str,
) -> anyhow::Result<()> {
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    super::tell(ledger, &stock, item).await?;
    if !output.json {
        return output::print(told);
    }
    output::json(&json!({
        "item": item.sale.item.to_string(),
        "opens_at": item.sale.window.opens_at().to_string(),
        "closes_at": item.sale.window.closes_at().to_string(),
        "pause_id": item.pause.as_ref().map(|pause| pause.pause_id.to_string()),
        "pause_reason": item.pause.as_ref().map(|pause| &pause.reason),
    }))
}
