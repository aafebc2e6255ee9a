//! `lastunit item …`: one file a verb.

mod add_stock;
mod change;
mod list;
pub(crate) mod put;
mod rebucket;
mod show;

pub(crate) use add_stock::{AddStockArgs, add_stock};
pub(crate) use change::{EndArgs, PauseArgs, ResumeArgs, end, pause, resume};
pub(crate) use list::list;
pub(crate) use put::{PutArgs, put};
pub(crate) use rebucket::{RebucketArgs, rebucket};
pub(crate) use show::show;

use anyhow::Context;
use shared::ledger::{Item, Ledger};
use shared::stock::Stock;

/// Tells Redis the terms that the ledger has now.
async fn tell(ledger: &Ledger, stock: &Stock, item: &Item) -> anyhow::Result<()> {
    let told = reconciler::tell_terms(ledger, stock, &item.sale.item).await.with_context(|| {
        format!(
            "the ledger has the change of {}, Redis does not yet; the reconciler tells it, or run this again",
            item.sale.item
        )
    })?;
    if !told {
        eprintln!("{} is not in Redis; its warm-up brings the change.", item.sale.item);
    }
    Ok(())
}
