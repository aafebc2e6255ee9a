//! `lastunit item list`.

use serde_json::json;
use shared::config::Config;
use shared::ledger::{Item, Ledger};

use crate::args::ListArgs;
use crate::output;

pub(crate) async fn list(config: &Config, args: ListArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let items = ledger.list_items(args.after.as_ref(), args.most).await?;
    if args.output.json {
        let items = items.iter().map(|item| {
            json!({
                "item": item.sale.item.to_string(),
                "total": item.sale.total,
                "available": item.available,
                "limit_per_buyer": item.sale.limit_per_buyer,
                "opens_at": item.sale.window.opens_at().to_string(),
                "closes_at": item.sale.window.closes_at().to_string(),
                "epoch": item.epoch,
            })
        });
        return output::json(&items.collect::<Vec<_>>());
    }
    let more = items.len() == args.most as usize;
    let last = items.last().map(|item| item.sale.item.to_string()).unwrap_or_default();
    let row = |item: Item| {
        [
            item.sale.item.to_string(),
            item.sale.total.to_string(),
            item.available.to_string(),
            item.sale.limit_per_buyer.map_or("none".to_owned(), |limit| limit.to_string()),
            item.sale.window.opens_at().to_string(),
            item.sale.window.closes_at().to_string(),
        ]
    };
    output::table(
        ["item", "total", "available", "limit", "opens at", "closes at"],
        items.into_iter().map(row).collect(),
    )?;
    if more {
        eprintln!("There may be more: lastunit item list --after {last}");
    }
    Ok(())
}
