//! `lastunit dlq discard`.

use std::process::ExitCode;

use clap::Args;
use reconciler::letters::{DiscardOptions, discard};
use serde_json::json;
use shared::backends::Backends;
use shared::config::Config;
use shared::domain::Reason;
use shared::shutdown::Shutdown;

use super::filter::{Actor, Selection};
use crate::args::Output;
use crate::output;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    selection: Selection,
    /// Why, for the orders that expire: anything, kept as a–z 0–9 _
    #[arg(long, value_name = "REASON", default_value = "discarded", value_parser = reason)]
    reason: Reason,
    /// Which letters: those that died of this (elsewhere this is --reason)
    #[arg(long, value_name = "REASON")]
    died_of: Option<String>,
    #[command(flatten)]
    actor: Actor,
    #[command(flatten)]
    output: Output,
}

/// What people write becomes what programs read: `Wrong price!` is `wrong_price`.
fn reason(text: &str) -> Result<Reason, String> {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { ' ' };
    let lower = text.to_lowercase();
    let words: String = lower.chars().map(kept).collect();
    let joined = words.split_whitespace().collect::<Vec<_>>().join("_");
    joined.parse().map_err(|_| format!("{text:?} has no letter or digit, or more than 64"))
}

/// Discards until nothing that fits is left. Killed or stopped half-way, the same command, or the
/// reconciler, goes on where it was.
pub(crate) async fn run(config: &Config, args: DiscardArgs) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::on_signals()?;
    let backends = Backends::open(config, "operator")?;
    let filter = args.selection.filter(&backends.ledger, args.died_of.as_deref()).await?;
    let options = DiscardOptions { who: args.actor.name(), reason: args.reason };
    let class = args.selection.narrowing.class;
    let mut progress = Progress::new();
    progress.step("counting letters");
    let letters = backends.ledger.count_letters(&filter).await?;
    let bar = progress.count("discarding letters", letters);
    let report =
        discard(&backends, &filter, class, &options, &shutdown.stop, |more| bar.inc(more)).await?;
    progress.done();
    backends.ledger.close().await;
    if args.output.json {
        output::json(&json!({
            "run": report.run.run_id.to_string(),
            "discarded": report.discarded,
            "ends": report.ends,
            "stopped": report.stopped,
        }))?;
    } else {
        let mut ends: Vec<_> = report.ends.iter().collect();
        ends.sort();
        let rows = ends.into_iter().map(|(end, letters)| [(*end).to_owned(), letters.to_string()]);
        let all = ["together".to_owned(), report.discarded.to_string()];
        output::table(["end", "letters"], rows.chain([all]).collect())?;
    }
    if report.stopped {
        eprintln!("lastunit: stopped; the same command goes on where it was.");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_written_as_people_write_them() {
        for (text, kept) in [("discarded", "discarded"), ("Wrong price!", "wrong_price")] {
            assert_eq!(reason(text).map(|reason| reason.to_string()), Ok(kept.to_owned()));
        }
        for bad in ["", "!?", &"a".repeat(65)] {
            assert!(reason(bad).is_err(), "{bad}");
        }
    }
}
