//! `lastunit dlq import`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use shared::config::Config;
use shared::ledger::{KeptLetter, Ledger};

use super::filter::Actor;
use super::line::Line;
use crate::args::Output;
use crate::output;

/// Letters of one transaction.
const PAGE: usize = 512;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What `dlq export` has written; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    actor: Actor,
    #[command(flatten)]
    output: Output,
}

/// Reads every line before it writes anything: one wrong line, and nothing has changed. Letters that
/// are here already stay as they are, so a second run finishes one that was cut short.
pub(crate) async fn run(config: &Config, args: ImportArgs) -> anyhow::Result<()> {
    let letters = read(&args.file)?;
    let ledger = Ledger::connect(&config.ledger)?;
    let who = args.actor.name();
    let (mut imported, mut known) = (0_u64, 0_u64);
    for page in letters.chunks(PAGE) {
        for is_new in ledger.import_letters(&who, page).await? {
            if is_new { imported += 1 } else { known += 1 }
        }
    }
    if args.output.json {
        return output::json(&json!({ "imported": imported, "known": known }));
    }
    output::print(&format!(
        "{imported} letters are imported; {known} were here and stay as they are."
    ))
}

fn read(file: &Path) -> anyhow::Result<Vec<KeptLetter>> {
    let from: Box<dyn Read> = if file == Path::new("-") {
        Box::new(stdin())
    } else {
        let opened = File::open(file);
        Box::new(opened.with_context(|| format!("cannot read {}", file.display()))?)
    };
    let (mut letters, mut ids) = (Vec::new(), HashSet::new());
    for (number, line) in (1..).zip(BufReader::new(from).lines()) {
        let place = || format!("{}, line {number}", file.display());
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(&line).with_context(place)?;
        let letter = line.letter().with_context(place)?;
        if !ids.insert(letter.letter_id) {
            bail!("{}: letter {} comes twice", place(), letter.letter_id);
        }
        letters.push(letter);
    }
    Ok(letters)
}
