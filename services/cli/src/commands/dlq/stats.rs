//! `lastunit dlq stats`.

use clap::Args;
use serde_json::json;
use shared::config::Config;
use shared::ledger::{ErrorCount, Ledger, ReasonCount};

use super::filter::{DiedOf, Misuse, Narrowing};
use super::list::States;
use super::shown::rfc3339;
use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    died_of: DiedOf,
    #[command(flatten)]
    narrowing: Narrowing,
    /// In this state
    #[arg(long, value_enum, default_value_t = States::Any)]
    state: States,
    /// Most errors to list
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    most: u32,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(config: &Config, args: StatsArgs) -> anyhow::Result<()> {
    if args.narrowing.class.is_some() {
        anyhow::bail!(Misuse("`dlq plan` counts letters by class, `dlq stats` does not know it"));
    }
    let ledger = Ledger::connect(&config.ledger)?;
    let filter = args.narrowing.filter(args.state.wanted(), args.died_of.reason.as_deref());
    let reasons = ledger.letters_by_reason(&filter).await?;
    let errors = ledger.letters_by_error(&filter, args.most).await?;
    if args.output.json {
        let reason = |count: &ReasonCount| json!({ "reason": count.reason, "state": count.state, "letters": count.letters });
        let error = |count: &ErrorCount| {
            json!({
                "fingerprint": count.fingerprint,
                "reason": count.reason,
                "letters": count.letters,
                "items": count.items,
                "first_died_at": rfc3339(count.first_died_at),
                "last_died_at": rfc3339(count.last_died_at),
                "example": count.example.to_string(),
            })
        };
        return output::json(&json!({
            "by_reason": reasons.iter().map(reason).collect::<Vec<_>>(),
            "by_error": errors.iter().map(error).collect::<Vec<_>>(),
        }));
    }
    let reason = |count: ReasonCount| [count.reason, count.state, count.letters.to_string()];
    output::table(["reason", "state", "letters"], reasons.into_iter().map(reason).collect())?;
    let error = |count: ErrorCount| {
        [
            count.letters.to_string(),
            count.reason,
            count.fingerprint,
            count.items.to_string(),
            rfc3339(count.last_died_at),
            count.example.to_string(),
        ]
    };
    output::table(
        ["letters", "reason", "fingerprint of the error", "items", "last died", "for example"],
        errors.into_iter().map(error).collect(),
    )
}
