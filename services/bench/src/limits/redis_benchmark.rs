//! Redis's own benchmark program with our own script.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use redis::Script;
use shared::devstack::{clean_command, find_program};
use shared::domain::ItemId;
use shared::stock::{Bucket, Layout};
use tokio::process::Command;
use tokio::time::timeout;
use url::Url;

use crate::deployment::Deployment;
use crate::rig::Rig;
use crate::stages::taking::{requests, take};

/// Single calls of `reserve`.
pub(super) struct SingleReserve<'a> {
    pub(super) item: &'a ItemId,
    pub(super) layout: Layout,
    pub(super) requests: u64,
}

const CONNECTIONS: &str = "50";

/// It writes a number from 0 up to here, in twelve digits, wherever a mark stands: the last twelve
/// digits of a UUID.
const NUMBERS: &str = "2000000000";

const LONGEST: Duration = Duration::from_secs(120);

/// Requests per second, one by one.
pub(super) async fn single_reserves(
    rig: &Rig,
    deployment: &Deployment,
    single: SingleReserve<'_>,
) -> anyhow::Result<f64> {
    let SingleReserve { item, layout, requests } = single;
    let hash = script(deployment).await?;
    let bucket = Bucket { item: item.clone(), number: 0 };
    let url: Url = rig.endpoints().redis_url.parse()?;
    let program = find_program("redis-benchmark", "redis-tools (or redis)")?;
    let mut command = clean_command(&program);
    command.args(["-h", url.host_str().unwrap_or("127.0.0.1")]);
    command.arg("-p").arg(url.port().unwrap_or(6379).to_string());
    command.args(["-a", url.password().unwrap_or_default()]);
    command.args(["-c", CONNECTIONS, "-n", &requests.to_string(), "-r", NUMBERS, "--csv"]);
    command.args(["EVALSHA", &hash, "4"]);
    for key in ["sale", "buyers", "held", "hold:00000000-0000-4000-8000-__rand_int__"] {
        command.arg(deployment.key(&bucket, key));
    }
    let Layout { epoch, buckets } = layout;
    let first_look = deployment.config.redis.first_look_ms;
    command.args([epoch.to_string(), buckets.to_string(), first_look.to_string()]);
    // A reservation id has 22 characters here.
    command.args(["AAAAAAAAAA__rand_int__", "b__rand_int__", "1"]);
    let output = Command::from(command).kill_on_drop(true).output();
    let output = timeout(LONGEST, output).await.context("redis-benchmark does not end")??;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "redis-benchmark failed: {text}");
    per_second(&text)
}

/// The script as the product sends it, whose hash Redis must therefore know by now.
async fn script(deployment: &Deployment) -> anyhow::Result<String> {
    let (first, rest) = include_str!("../../../../lua/reserve.lua")
        .split_once('\n')
        .context("the script has one line")?;
    let record = include_str!("../../../../lua/record.lua");
    let checks = deployment.config.redis.checks_incarnation;
    let text = format!("{first}\nlocal CHECKS_INCARNATION = {checks}\n{record}\n{rest}");
    let hash = Script::new(&text).get_hash().to_owned();
    let item: ItemId = "warm-script".parse()?;
    let layout = deployment.sell(&item, 0, None).await?;
    take(&deployment.stock, &item, layout, &requests(&item, "s", 1)?, (1, 1)).await?;
    let known: Vec<bool> = redis::cmd("SCRIPT")
        .arg("EXISTS")
        .arg(&hash)
        .query_async(&mut deployment.redis.clone())
        .await?;
    if known != [true] {
        bail!("the product sends another text of `reserve` than the one that is measured here");
    }
    Ok(hash)
}

/// The second column of the last line, counted from its end, because the first one is the command.
fn per_second(csv: &str) -> anyhow::Result<f64> {
    let line = csv.lines().rfind(|line| line.starts_with('"')).unwrap_or_default();
    let columns: Vec<&str> = line.trim_matches('"').split("\",\"").collect();
    let column = columns.len().checked_sub(COLUMNS_BEHIND_THE_NAME).and_then(|at| columns.get(at));
    let number = column.and_then(|column| column.parse().ok());
    number.with_context(|| format!("redis-benchmark printed no figure: {csv}"))
}

/// Requests per second; then average, least, p50, p95, p99 and most latency.
const COLUMNS_BEHIND_THE_NAME: usize = 7;

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn the_figure_is_found_behind_any_command() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                   \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"EVALSHA a\",\"b 1\",\"34364.26\",\"1.4\",\"0.2\",\"1.4\",\"2.1\",\"2.9\",\"4.0\"\n";
        assert_eq!(per_second(csv).expect("a figure"), 34364.26);
        assert!(per_second("").is_err());
        assert!(per_second("\"test\",\"rps\"\n").is_err());
    }
}
