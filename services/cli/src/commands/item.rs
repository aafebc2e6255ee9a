//! `lastunit item put | show | list`.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use chrono::DateTime;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use shared::config::Config;
use shared::domain::{ItemId, Sale, UnixMillis, Window};
use shared::ledger::{Item, Ledger, PutOutcome};
use shared::stock::{Bucket, Stock};

use crate::args::{ListArgs, Output, ShowArgs};
use crate::output;

/// How long a sale lasts unless it is said.
const DEFAULT_LENGTH: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    /// Units to sell, 0–1,000,000,000
    #[arg(long, value_name = "UNITS")]
    total: u64,
    /// Most units that one buyer may have [default: no limit]
    #[arg(long, value_name = "UNITS")]
    limit: Option<u64>,
    /// When the sale opens: RFC 3339, `now`, or from now on like +30s, +10m, +2h, +1d [default: now]
    #[arg(long, value_name = "TIME")]
    opens_at: Option<Time>,
    /// When the sale closes, written like --opens-at [default: 24 hours after it opens]
    #[arg(long, value_name = "TIME")]
    closes_at: Option<Time>,
    #[command(flatten)]
    output: Output,
}

/// A point in time, as people write it.
#[derive(Debug, Clone, Copy)]
struct Time(UnixMillis);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let now = UnixMillis::from(SystemTime::now());
        if text == "now" {
            return Ok(Self(now));
        }
        if let Some(later) = text.strip_prefix('+') {
            return length(later).map(|later| Self(now.plus(later))).ok_or_else(|| wrong(text));
        }
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| wrong(text))?;
        u64::try_from(time.timestamp_millis())
            .map(|millis| Self(UnixMillis(millis)))
            .map_err(|_| wrong(text))
    }
}

fn wrong(text: &str) -> String {
    format!("{text:?} is not RFC 3339 (2026-12-24T18:00:00Z), `now`, or like +30s, +10m, +2h, +1d")
}

pub(crate) fn length(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

pub(crate) async fn put(config: &Config, args: PutArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let existing = ledger.find_item(&args.item).await?;
    let sale = sale(&args, existing)?;
    let outcome = match ledger.put_item(&sale).await? {
        PutOutcome::Created => "created",
        PutOutcome::Changed => "changed",
        PutOutcome::Unchanged => "unchanged",
        PutOutcome::AlreadyWarm(item) => bail!(
            "{} is warmed up (epoch {}) and sells {} units from {} to {}; its sale cannot be changed",
            sale.item,
            item.epoch,
            item.sale.total,
            item.sale.window.opens_at(),
            item.sale.window.closes_at(),
        ),
    };
    if args.output.json {
        return output::json(&json!({ "item": sale.item.to_string(), "outcome": outcome }));
    }
    output::print(&format!(
        "{} is {outcome}: {} units, {}, on sale from {} to {}. Next: lastunit warm {}",
        sale.item,
        sale.total,
        sale.limit_per_buyer.map_or("no limit".to_owned(), |limit| format!("{limit} a buyer")),
        sale.window.opens_at(),
        sale.window.closes_at(),
        sale.item,
    ))
}

/// The sale that the flags describe. A window that is not given stays as it is.
fn sale(args: &PutArgs, existing: Option<Item>) -> anyhow::Result<Sale> {
    let window = existing.map(|item| item.sale.window);
    let now = UnixMillis::from(SystemTime::now());
    let opens_at = args.opens_at.map(|time| time.0).or(window.map(|window| window.opens_at()));
    let opens_at = opens_at.unwrap_or(now);
    let closes_at = args.closes_at.map(|time| time.0).or(window.map(|window| window.closes_at()));
    let closes_at = closes_at.unwrap_or(opens_at.plus(DEFAULT_LENGTH));
    let window = Window::new(opens_at, closes_at)
        .with_context(|| format!("opens at {opens_at}, closes at {closes_at}"))?;
    Ok(Sale::new(args.item.clone(), args.total, args.limit, window)?)
}

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
    epoch: u64,
    redis_epoch: Option<u64>,
}

pub(crate) async fn show(config: &Config, args: ShowArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    let Some(item) = ledger.find_item(&args.item).await? else {
        bail!("there is no item {}; `lastunit item list` shows all", args.item);
    };
    let orders = ledger.count_orders(&args.item).await?;
    let redis = stock.snapshot(&Bucket { item: args.item.clone(), number: 0 }).await?;
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
        redis_available: redis.map(|redis| redis.available),
        held: redis.map(|redis| redis.held),
        epoch: item.epoch,
        redis_epoch: redis.map(|redis| redis.epoch),
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
        ("epoch in the ledger", shown.epoch.to_string()),
        ("epoch in Redis", or_cold(shown.redis_epoch)),
    ])
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        assert_eq!(length("90s"), Some(Duration::from_secs(90)));
        assert_eq!(length("2h"), Some(Duration::from_secs(7200)));
        for bad in ["", "s", "1", "1w", "-1s", "1.5h", "18446744073709551615d", "1分"] {
            assert_eq!(length(bad), None, "{bad}");
        }
        assert_eq!(
            "2027-01-15T08:00:00Z".parse::<Time>().expect("a time").0,
            UnixMillis(1_800_000_000_000)
        );
        assert!("tomorrow".parse::<Time>().is_err());
    }
}
