//! The sale itself: put it on, let the crowd buy, follow every purchase, look into the books.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use load::crowd::{Crowd, Fared, Outcome, Plan};
use load::known::hears_of;
use load::report::{Evidence, Report};
use load::settle::{self, Accepted};
use shared::domain::{Books, ItemId, Sale, UnixMillis, Window};
use shared::ledger::Ledger;
use shared::stock::{ItemSnapshot, Stock};

use super::DemoArgs;
use super::line::Line;
use crate::progress::Progress;

/// How long every accepted purchase may take to become final.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Attempts of one buyer, about a second apart.
const ATTEMPTS: u32 = 10;

/// Open files that are kept for everything but buyers' connections.
const OTHER_FILES: u64 = 512;

/// More connections than this teach nothing more.
const MOST_CONNECTIONS: u64 = 10_000;

pub(crate) async fn run(
    line: &Line,
    args: &DemoArgs,
    open_files: u64,
    progress: &mut Progress,
) -> anyhow::Result<Report> {
    let ledger = Ledger::connect(&line.config.ledger)?;
    let stock = Stock::connect(&line.config.redis, &line.config.namespace)?;
    let item: ItemId = "demo-item".parse()?;
    put_on_sale(line, &ledger, &stock, &item, args.units).await?;

    let connections = open_files.saturating_sub(OTHER_FILES).clamp(1, MOST_CONNECTIONS);
    let plan = Plan {
        address: line.address,
        item: item.to_string(),
        buyers: args.buyers,
        quantity: 1,
        connections: u32::try_from(connections)?.min(args.buyers),
        seed: args.seed,
        attempts: ATTEMPTS,
    };
    let waiting = progress.count("buyers come", u64::from(plan.buyers));
    let crowd = Crowd::gather(plan.clone(), |more| waiting.inc(more)).await;
    let buying = progress.count("buyers buy", u64::from(plan.buyers));
    let (fared, begun) = crowd.buy(move || buying.inc(1)).await;
    let bought = begun.elapsed();

    let accepted: Vec<Accepted> = fared.iter().filter_map(accepted).collect();
    let finals_bar = progress.count("orders become final", accepted.len() as u64);
    let finals = settle::follow(line.address, accepted, PATIENCE, move || finals_bar.inc(1)).await;
    let redis = until_nothing_is_held(&stock, &item).await?;
    let converged = begun.elapsed();
    progress.step("looking into the books");
    let orders = ledger.count_orders(&item).await?;
    let in_ledger = ledger.find_item(&item).await?.context("the item has vanished")?;
    let books = Books {
        total: in_ledger.sale.total,
        confirmed_units: orders.confirmed_units,
        ledger_available: in_ledger.available,
        redis_available: redis.as_ref().map(|redis| redis.available),
        held: redis.as_ref().map_or(0, |redis| redis.held),
        most_by_one_buyer: orders.most_by_one_buyer,
        limit_per_buyer: in_ledger.sale.limit_per_buyer,
    };
    Ok(Report::of(&Evidence {
        plan: &plan,
        units: args.units,
        consumers: line.consumers,
        fared: &fared,
        finals,
        orders,
        books,
        bought,
        converged,
    }))
}

async fn put_on_sale(
    line: &Line,
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    units: u64,
) -> anyhow::Result<()> {
    let now = UnixMillis::from(std::time::SystemTime::now());
    // Opened a minute ago, so that a small difference between clocks does not matter.
    let opened = UnixMillis(now.0.saturating_sub(60_000));
    let window = Window::new(opened, now.plus(Duration::from_secs(24 * 60 * 60)))?;
    ledger.put_item(&Sale::new(item.clone(), units, Some(1), window)?, None).await?;
    reconciler::bind_first(&line.config, ledger, stock).await?;
    reconciler::warm(ledger, stock, item).await?;
    if !hears_of(line.address, item, PATIENCE).await {
        bail!("ingress does not learn of {item}");
    }
    Ok(())
}

fn accepted(one: &Fared) -> Option<Accepted> {
    match &one.outcome {
        Outcome::Accepted { order } => {
            Some(Accepted { buyer: one.buyer.clone(), order: order.clone() })
        }
        _ => None,
    }
}

async fn until_nothing_is_held(
    stock: &Stock,
    item: &ItemId,
) -> anyhow::Result<Option<ItemSnapshot>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let snapshot = stock.snapshot_item(item).await?;
        if snapshot.as_ref().is_none_or(|snapshot| snapshot.held == 0) || Instant::now() >= until {
            return Ok(snapshot);
        }
        tokio::time::sleep(POLL).await;
    }
}
