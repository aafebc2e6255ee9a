//! `lastunit dlq replay`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use reconciler::letters::{ReplayOptions, ReplayReport, ReplayStep, replay};
use serde_json::{Value, json};
use shared::backends::Backends;
use shared::config::Config;
use shared::shutdown::Shutdown;

use super::filter::{Actor, DiedOf, Selection};
use crate::args::Output;
use crate::output;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    died_of: DiedOf,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    actor: Actor,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How")]
struct How {
    /// Send so many first, and the others only if all of these end well
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    canary: Option<u64>,
    /// Letters a second; 0 is as fast as the broker confirms
    #[arg(long, value_name = "LETTERS", default_value_t = 500)]
    rate: u32,
    /// Stop when a larger share of letters than this dies again or is refused, 0–1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    stop_at_failures: f64,
    /// How long to wait for orders while none is decided, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

/// Replays until everything is sent and decided. Killed or stopped half-way, the same command goes
/// on where it was.
pub(crate) async fn run(config: &Config, args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::on_signals()?;
    let backends = Backends::open(config, "operator")?;
    let filter = args.selection.filter(&backends.ledger, args.died_of.reason.as_deref()).await?;
    let options = ReplayOptions {
        who: args.actor.name(),
        canary: args.how.canary,
        rate: args.how.rate,
        stop_at_failures: args.how.stop_at_failures,
        wait: Duration::from_secs(args.how.wait),
    };
    let class = args.selection.narrowing.class;
    let mut progress = Progress::new();
    let mut bar = None;
    let on_step = |step| match step {
        ReplayStep::Begun(total) => bar = Some(progress.count("replaying letters", total)),
        ReplayStep::Sent(more) => {
            if let Some(bar) = &bar {
                bar.inc(more);
            }
        }
        ReplayStep::Awaiting(orders) => {
            if let Some(bar) = &bar {
                bar.set_message(format!("waiting for {orders} orders"));
            }
        }
    };
    let report =
        replay(config, &backends, &filter, class, &options, &shutdown.stop, on_step).await?;
    progress.done();
    backends.ledger.close().await;
    if args.output.json {
        output::json(&as_json(&report))?;
    } else {
        print(&report)?;
    }
    match &report.stopped {
        None => Ok(ExitCode::SUCCESS),
        Some(stopped) => {
            eprintln!(
                "lastunit: stopped: {stopped}. What is not sent stays parked; the same command goes on where it was."
            );
            Ok(ExitCode::FAILURE)
        }
    }
}

fn as_json(report: &ReplayReport) -> Value {
    let counts = &report.counts;
    json!({
        "run": report.run.run_id.to_string(),
        "sent": report.sent,
        "skipped": report.skipped,
        "confirmed": counts.confirmed,
        "refused": counts.refused,
        "repeated": counts.repeated,
        "died_again": counts.died_again,
        "undecided": counts.undecided,
        "stopped": report.stopped.as_ref().map(ToString::to_string),
    })
}

fn print(report: &ReplayReport) -> anyhow::Result<()> {
    let counts = &report.counts;
    output::pairs(vec![
        ("sent", report.sent.to_string()),
        ("confirmed", counts.confirmed.to_string()),
        ("refused", counts.refused.to_string()),
        ("decided before", counts.repeated.to_string()),
        ("died again", counts.died_again.to_string()),
        ("not decided yet", counts.undecided.to_string()),
        ("cannot be sent", report.skipped.to_string()),
    ])
}
