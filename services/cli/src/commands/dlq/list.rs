//! `lastunit dlq list`.

use clap::{Args, ValueEnum};
use shared::config::Config;
use shared::domain::LetterState;
use shared::ledger::{Ledger, LetterSort};
use uuid::Uuid;

use super::filter::{DiedOf, Narrowing};
use super::shown::{Judging, Shown, rfc3339};
use crate::args::Output;
use crate::output;

/// Letters that are judged at once while those of one class are looked for.
const PAGE: u32 = 512;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    died_of: DiedOf,
    #[command(flatten)]
    narrowing: Narrowing,
    /// In this state
    #[arg(long, value_enum, default_value_t = States::Open)]
    state: States,
    /// In this order
    #[arg(long, value_enum, default_value_t = Sort::Newest)]
    sort: Sort,
    /// Begin behind this letter
    #[arg(long, value_name = "ID")]
    after: Option<Uuid>,
    /// Most letters to list
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    most: u32,
    #[command(flatten)]
    output: Output,
}

/// States, as they are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum States {
    /// Parked or replaying
    Open,
    Parked,
    Replaying,
    Replayed,
    Discarded,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// The latest death first
    Newest,
    /// The earliest last death first
    Oldest,
    /// Those that died most often first
    Attempts,
}

impl States {
    pub(crate) fn wanted(self) -> Vec<LetterState> {
        match self {
            Self::Open => vec![LetterState::Parked, LetterState::Replaying],
            Self::Parked => vec![LetterState::Parked],
            Self::Replaying => vec![LetterState::Replaying],
            Self::Replayed => vec![LetterState::Replayed],
            Self::Discarded => vec![LetterState::Discarded],
            Self::Any => Vec::new(),
        }
    }
}

pub(crate) async fn run(config: &Config, args: ListArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    if let Some(after) = args.after
        && ledger.find_letter(after).await?.is_none()
    {
        anyhow::bail!("there is no letter {after} to begin behind");
    }
    let filter = args.narrowing.filter(args.state.wanted(), args.died_of.reason.as_deref());
    let sort = match args.sort {
        Sort::Newest => LetterSort::Newest,
        Sort::Oldest => LetterSort::Oldest,
        Sort::Attempts => LetterSort::Attempts,
    };
    let most = usize::try_from(args.most).unwrap_or(usize::MAX);
    let mut judging = Judging::open(config, &ledger).await?;
    let (mut found, mut after, mut more) = (Vec::new(), args.after, false);
    // A class is found by judging, so as many pages are judged as it takes.
    while found.len() < most {
        let size = if args.narrowing.class.is_some() { PAGE } else { args.most.min(PAGE) };
        let page = ledger.list_letters(&filter, sort, after, size).await?;
        more = page.len() == size as usize;
        let Some(last) = page.last() else { break };
        after = Some(last.letter_id);
        let shown = judging.judge(page).await;
        let of_class = |one: &Shown| {
            let class = one.judged.as_ref().map(|judged| judged.class);
            args.narrowing.class.is_none() || class == args.narrowing.class
        };
        found.extend(shown.into_iter().filter(of_class));
        if !more {
            break;
        }
    }
    more |= found.len() > most;
    found.truncate(most);
    print(&args, &found, more)
}

fn print(args: &ListArgs, found: &[Shown], more: bool) -> anyhow::Result<()> {
    if args.output.json {
        return output::json(&found.iter().map(Shown::json).collect::<Vec<_>>());
    }
    let row = |one: &Shown| {
        let letter = &one.letter;
        let subject = letter.subject.as_ref();
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        [
            letter.letter_id.to_string(),
            letter.state.to_string(),
            one.class().to_owned(),
            letter.reason.clone(),
            or_none(subject.map(|subject| subject.item.to_string())),
            or_none(subject.map(|subject| subject.buyer.to_string())),
            letter.attempts.to_string(),
            rfc3339(letter.last_died_at),
        ]
    };
    output::table(
        ["id", "state", "class", "reason", "item", "buyer", "deaths", "last died"],
        found.iter().map(row).collect(),
    )?;
    if let (true, Some(last)) = (more, found.last()) {
        eprintln!("There may be more: the same with --after {}", last.letter.letter_id);
    }
    Ok(())
}
