//! `lastunit dlq edit`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};
use shared::backends::Backends;
use shared::config::Config;
use shared::ledger::Ledger;
use uuid::Uuid;

use super::filter::{Actor, Misuse};
use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The letter's id
    #[arg(value_name = "ID")]
    id: Uuid,
    /// Put this value into a field, for example epoch=3; more than once if you like
    #[arg(long, value_name = "FIELD=VALUE", conflicts_with = "from")]
    set: Vec<Assignment>,
    /// Take the new bytes from this file [default: open them in $EDITOR]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    actor: Actor,
    #[command(flatten)]
    output: Output,
}

/// A field, and what to put into it.
#[derive(Debug, Clone)]
struct Assignment {
    field: String,
    value: Value,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = text
            .split_once('=')
            .filter(|(field, _)| !field.is_empty())
            .ok_or_else(|| format!("{text:?} is not FIELD=VALUE"))?;
        // What is JSON is taken as such; everything else is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Ok(Self { field: field.to_owned(), value })
    }
}

pub(crate) async fn run(config: &Config, args: EditArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let Some(letter) = ledger.find_letter(args.id).await? else {
        bail!("there is no letter {}; `lastunit dlq list --state any` shows all", args.id);
    };
    let body = if !args.set.is_empty() {
        with_set(&letter.body, &args.set)?
    } else if let Some(file) = &args.from {
        std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?
    } else {
        in_editor(&letter.body)?
    };
    if body == letter.body {
        bail!("the bytes are what they were; nothing to do");
    }
    let backends = Backends::open(config, "operator")?;
    let who = args.actor.name();
    let ids = reconciler::letters::edit(&backends, &letter, &body, &who).await?;
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    if args.output.json {
        return output::json(&json!({ "edited": args.id.to_string(), "letters": ids }));
    }
    output::print(&format!("Kept as {}. Next: lastunit dlq plan {}", ids.join(" "), ids.join(" ")))
}

/// Puts values into the one reservation of a message, or where a path like `reservations.0.epoch`
/// leads. Only into fields that are there.
fn with_set(body: &[u8], set: &[Assignment]) -> anyhow::Result<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(body).context(
        "the letter is no JSON; give the new bytes with --from, or edit them in $EDITOR",
    )?;
    for Assignment { field, value } in set {
        let alone = message["reservations"].as_array().is_some_and(|all| all.len() == 1);
        let path = match field.contains('.') || message.get(field).is_some() || !alone {
            true => field.clone(),
            false => format!("reservations.0.{field}"),
        };
        let place = message.pointer_mut(&format!("/{}", path.replace('.', "/")));
        *place.with_context(|| format!("the letter has no field {field}"))? = value.clone();
    }
    Ok(serde_json::to_vec(&message)?)
}

fn in_editor(body: &[u8]) -> anyhow::Result<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(body) else {
        bail!("the bytes are no text; give the new ones with --from");
    };
    let editor = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR"));
    let Ok(editor) = editor else {
        bail!(Misuse("say --set FIELD=VALUE or --from FILE, or set $EDITOR"));
    };
    let dir = std::env::temp_dir().join(format!("lastunit-edit-{}", Uuid::new_v4().simple()));
    std::fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let edited = edit_file(&editor, &dir.join("letter.json"), text);
    let _ = std::fs::remove_dir_all(&dir);
    edited
}

fn edit_file(editor: &str, file: &Path, text: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    // As shells do it, so that an editor may have arguments.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file)
        .status()
        .with_context(|| format!("cannot run {editor}"))?;
    if !status.success() {
        bail!("{editor} ended with {status}; the letter stays as it is");
    }
    let mut edited = std::fs::read(file)?;
    // Most editors end a file with a line break.
    if edited.last() == Some(&b'\n') && !text.ends_with('\n') {
        edited.pop();
    }
    Ok(edited)
}
