//! `lastunit dlq …`: one file a subcommand.

mod discard;
mod edit;
mod export;
mod filter;
mod import;
mod line;
mod list;
mod plan;
mod replay;
mod show;
mod shown;
mod stats;

pub(crate) use filter::Misuse;
pub(crate) use show::standing;

use std::process::ExitCode;

use clap::Subcommand;
use shared::config::Config;

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// List letters, page by page, with what each is worth
    List(list::ListArgs),
    /// Show one letter: its bytes, its headers, what ledger and Redis say, and its history
    Show(show::ShowArgs),
    /// Count letters by what they died of
    Stats(stats::StatsArgs),
    /// Say what a replay would do to stock and orders; nothing is sent, nothing is written
    Plan(plan::PlanArgs),
    /// Send letters again, under their own reservation ids and through their usual queues
    Replay(replay::ReplayArgs),
    /// Give letters up: their requests expire in the ledger, then their stock goes back
    Discard(discard::DiscardArgs),
    /// Change the bytes of a letter; never its ids, item, buyer or quantity
    Edit(edit::EditArgs),
    /// Write letters as lines of JSON
    Export(export::ExportArgs),
    /// Read letters from lines of JSON; what is here already stays as it is
    Import(import::ImportArgs),
}

/// Runs a subcommand.
pub(crate) async fn run(config: &Config, command: DlqCommand) -> anyhow::Result<ExitCode> {
    match command {
        DlqCommand::List(args) => list::run(config, args).await?,
        DlqCommand::Show(args) => show::run(config, args).await?,
        DlqCommand::Stats(args) => stats::run(config, args).await?,
        DlqCommand::Plan(args) => plan::run(config, args).await?,
        DlqCommand::Edit(args) => edit::run(config, args).await?,
        DlqCommand::Export(args) => export::run(config, args).await?,
        DlqCommand::Import(args) => import::run(config, args).await?,
        DlqCommand::Replay(args) => return replay::run(config, args).await,
        DlqCommand::Discard(args) => return discard::run(config, args).await,
    }
    Ok(ExitCode::SUCCESS)
}
