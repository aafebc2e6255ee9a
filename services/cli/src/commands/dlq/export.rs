//! `lastunit dlq export`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use shared::config::Config;
use shared::ledger::{Ledger, LedgerError, LetterFilter, LetterSort};

use super::filter::{DiedOf, Misuse, Selection};
use super::line::Line;
use super::list::States;

/// Letters that are in memory at once.
const PAGE: u32 = 512;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    died_of: DiedOf,
    #[command(flatten)]
    selection: Selection,
    /// In this state
    #[arg(long, value_enum, default_value_t = States::Any)]
    state: States,
    /// Write to this file, which must not exist yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(crate) async fn run(config: &Config, args: ExportArgs) -> anyhow::Result<()> {
    if args.selection.narrowing.class.is_some() {
        anyhow::bail!(Misuse("a class changes from moment to moment; export by anything else"));
    }
    let ledger = Ledger::connect(&config.ledger)?;
    let filter = args.selection.filter(&ledger, args.died_of.reason.as_deref()).await?;
    let filter = LetterFilter { states: args.state.wanted(), ..filter };
    let written = match &args.to {
        None => write_all(&ledger, &filter, io::stdout().lock()).await,
        Some(file) => {
            let new = File::create_new(file);
            let new = new.with_context(|| format!("cannot create {}", file.display()))?;
            write_all(&ledger, &filter, BufWriter::new(new)).await
        }
    };
    let letters = written?;
    eprintln!("{letters} letters are exported.");
    Ok(())
}

async fn write_all(
    ledger: &Ledger,
    filter: &LetterFilter,
    mut out: impl Write,
) -> anyhow::Result<u64> {
    let (mut after, mut letters) = (None, 0);
    loop {
        let page: Result<Vec<_>, LedgerError> =
            ledger.list_letters(filter, LetterSort::Id, after, PAGE).await;
        let page = page?;
        let Some(last) = page.last() else { break };
        after = Some(last.letter_id);
        for letter in &page {
            let line = serde_json::to_string(&Line::of(letter))?;
            writeln!(out, "{line}").context("cannot write the letters")?;
            letters += 1;
        }
    }
    out.flush().context("cannot write the letters")?;
    Ok(letters)
}
