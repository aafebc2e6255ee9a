//! `lastunit item put`: publishes a sale, or changes its window.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use chrono::DateTime;
use clap::Args;
use serde_json::json;
use shared::config::Config;
use shared::domain::{BucketCount, ItemId, Sale, UnixMillis, Window};
use shared::ledger::{Item, Ledger, PutOutcome};
use shared::stock::Stock;

use crate::args::Output;
use crate::output;

/// How long a sale lasts unless it is said.
const DEFAULT_LENGTH: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    item: ItemId,
    /// Units to sell, 0–1,000,000,000; needed for a new item
    #[arg(long, value_name = "UNITS")]
    total: Option<u64>,
    /// Most units that one buyer may have, or `none` [default: none]
    #[arg(long, value_name = "UNITS")]
    limit: Option<Limit>,
    /// Buckets that its stock is divided into, 1–64, for more buyers at once than one core of Redis can
    /// serve; `item rebucket` changes it once the item is warm [default: 1]
    #[arg(long, value_name = "COUNT")]
    buckets: Option<BucketCount>,
    /// When the sale opens: RFC 3339, `now`, or from now on like +30s, +10m, +2h, +1d [default: now]
    #[arg(long, value_name = "TIME")]
    opens_at: Option<Time>,
    /// When the sale closes, written like --opens-at [default: 24 hours after it opens]
    #[arg(long, value_name = "TIME")]
    closes_at: Option<Time>,
    #[command(flatten)]
    output: Output,
}

/// A limit, as people write it.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<u64>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let units =
            text.parse().map_err(|_| format!("{text:?} is not a number of units or `none`"))?;
        Ok(Self(Some(units)))
    }
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
    let outcome = match ledger.put_item(&sale, args.buckets).await? {
        PutOutcome::Created => "created",
        PutOutcome::Changed => "changed",
        PutOutcome::Unchanged => "unchanged",
        PutOutcome::AlreadyWarm(item) => bail!(
            "{} has been warmed up (epoch {}) with {} units, {} and {} buckets; only its window can be changed by now. `lastunit item add-stock` adds units, `lastunit item rebucket` divides them anew",
            sale.item,
            item.epoch,
            item.sale.total,
            limit(&item.sale),
            item.buckets,
        ),
    };
    let item = ledger.find_item(&sale.item).await?.context("the item has gone")?;
    let is_warm = item.epoch > 0;
    if is_warm {
        let stock = Stock::connect(&config.redis, &config.namespace)?;
        super::tell(&ledger, &stock, &item).await?;
    }
    if args.output.json {
        return output::json(&json!({ "item": sale.item.to_string(), "outcome": outcome }));
    }
    output::print(&format!(
        "{} is {outcome}: {} units, {}, on sale from {} to {}.{}",
        sale.item,
        sale.total,
        limit(&sale),
        sale.window.opens_at(),
        sale.window.closes_at(),
        if is_warm { String::new() } else { format!(" Next: lastunit warm {}", sale.item) },
    ))
}

fn limit(sale: &Sale) -> String {
    sale.limit_per_buyer.map_or("no limit".to_owned(), |limit| format!("{limit} a buyer"))
}

/// The sale that the flags describe. What is not given stays as it is.
fn sale(args: &PutArgs, existing: Option<Item>) -> anyhow::Result<Sale> {
    let existing = existing.map(|item| item.sale);
    let window = existing.as_ref().map(|sale| sale.window);
    let now = UnixMillis::from(SystemTime::now());
    let opens_at = args.opens_at.map(|time| time.0).or(window.map(|window| window.opens_at()));
    let opens_at = opens_at.unwrap_or(now);
    let closes_at = args.closes_at.map(|time| time.0).or(window.map(|window| window.closes_at()));
    let closes_at = closes_at.unwrap_or(opens_at.plus(DEFAULT_LENGTH));
    let window = Window::new(opens_at, closes_at)
        .with_context(|| format!("opens at {opens_at}, closes at {closes_at}"))?;
    let total = args.total.or(existing.as_ref().map(|sale| sale.total));
    let total = total.with_context(|| format!("{} is new: say --total UNITS", args.item))?;
    let limit = match args.limit {
        Some(Limit(limit)) => limit,
        None => existing.and_then(|sale| sale.limit_per_buyer),
    };
    Ok(Sale::new(args.item.clone(), total, limit, window)?)
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
