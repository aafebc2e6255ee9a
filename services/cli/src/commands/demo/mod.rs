//! `lastunit demo`: the founding case, for real, on this machine alone.

mod line;
mod rehearsal;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use load::report::Report;
use shared::shutdown::Shutdown;

use self::line::Line;
use super::INTERRUPTED;
use crate::args::Output;
use crate::progress::Progress;
use crate::{open_files, output};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Units on sale
    #[arg(long, value_name = "COUNT", default_value_t = 500, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    units: u64,
    /// Buyers, each of whom buys one unit
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    buyers: u32,
    /// Consumer processes
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    consumers: u32,
    /// Decides in which order the buyers come
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Where data and logs are kept while it runs; removed when the law holds
    #[arg(long, value_name = "DIR", default_value = ".lastunit")]
    dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::on_signals()?;
    let dir = args.dir.join(format!("demo-{}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    // Stopping early drops the line, and with it every process that it started.
    let report = tokio::select! {
        report = rehearse(&args, dir.clone()) => report,
        () = shutdown.stop.cancelled() => {
            eprintln!("Interrupted; everything that was started is stopped.");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    let report = report.with_context(|| format!("data and logs are in {}", dir.display()))?;
    show(&report, args.output)?;
    if report.verdict == "pass" {
        std::fs::remove_dir_all(&dir)
            .with_context(|| format!("cannot remove {}", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("Data and logs are in {}.", dir.display());
    Ok(ExitCode::FAILURE)
}

async fn rehearse(args: &DemoArgs, dir: PathBuf) -> anyhow::Result<Report> {
    let open_files = open_files::raise_limit();
    let mut progress = Progress::new();
    let line = Line::start(dir, args.consumers, &mut progress).await?;
    let report = rehearsal::run(&line, args, open_files, &mut progress).await?;
    line.stop(&mut progress).await?;
    Ok(report)
}

fn show(report: &Report, output: Output) -> anyhow::Result<()> {
    if output.json {
        return output::json(report);
    }
    let or_none = |number: Option<String>| number.unwrap_or_else(|| "none".to_owned());
    output::pairs(vec![
        ("units on sale", report.units.to_string()),
        ("buyers", format!("{} on {} connections", report.buyers, report.connections)),
        ("accepted", report.accepted.to_string()),
        ("confirmed", report.confirmed.to_string()),
        ("rejected", report.rejected.to_string()),
        ("sold out", report.sold_out.to_string()),
        ("errors", report.errors.to_string()),
        ("retries", report.retries.to_string()),
        ("available in the ledger", report.ledger_available.to_string()),
        ("available in Redis", or_none(report.redis_available.map(|n| n.to_string()))),
        ("drift", or_none(report.drift.map(|n| n.to_string()))),
        ("held", report.held.to_string()),
        ("duplicate orders", report.duplicates.to_string()),
        ("all answered after", format!("{} ms", report.bought_ms)),
        ("all final after", format!("{} ms", report.converged_ms)),
        (
            "time to be accepted",
            format!("p50 {:.1} ms, p99 {:.1} ms", report.accept_p50_ms, report.accept_p99_ms),
        ),
    ])?;
    for violation in &report.violations {
        output::print(&format!("BROKEN: {violation}"))?;
    }
    output::print(&format!(
        "verdict: {} – {} of {} units went to {} buyers, {} were told sold out{}",
        report.verdict,
        report.confirmed,
        report.units,
        report.buyers,
        report.sold_out,
        if report.verdict == "pass" { "; nothing oversold, lost or left hanging" } else { "" },
    ))
}
