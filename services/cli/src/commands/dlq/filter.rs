//! Which letters an operator means, as flags.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use chrono::{DateTime, Utc};
use clap::Args;
use shared::domain::{BuyerId, ItemId, LetterClass, LetterState};
use shared::ledger::{Ledger, LetterFilter};
use uuid::Uuid;

use crate::commands::item::put::length;

/// What letters died of. Apart from the others, because `--reason` says something else where letters
/// are discarded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which letters")]
pub(crate) struct DiedOf {
    /// That died of this, for example undecodable, unknown_item, mismatch, hopeless
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
}

/// What narrows letters down; several together narrow further.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which letters")]
pub(crate) struct Narrowing {
    /// Of this class: would_confirm, would_restore, already_confirmed, already_rejected,
    /// hold_restored, hold_missing, sale_ended, undecodable, foreign_environment
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<LetterClass>,
    /// Of this item
    #[arg(long, value_name = "ITEM")]
    item: Option<ItemId>,
    /// Of this buyer
    #[arg(long, value_name = "BUYER")]
    buyer: Option<BuyerId>,
    /// With this text in the error (whatever its case) or in the bytes
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// With this fingerprint of the error, as `dlq stats` shows it
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Option<String>,
    /// That died last at this time or later: RFC 3339, or so long ago, like 30s, 10m, 2h, 1d
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// That died last before this time, written like --since
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
}

/// Letters to act on. Nobody acts on all of them by leaving something out.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which letters")]
pub(crate) struct Selection {
    /// Letters by their ids
    #[arg(value_name = "ID")]
    ids: Vec<Uuid>,
    /// Every letter
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    pub(crate) narrowing: Narrowing,
}

/// Who acts.
#[derive(Debug, Args)]
pub(crate) struct Actor {
    /// Who does it, for the letters' history [default: $USER, or the name of the login]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

/// A point in time, as people write it.
#[derive(Debug, Clone, Copy)]
struct When(DateTime<Utc>);

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Ok(Self(time.to_utc()));
        }
        let ago = length(text.trim_end_matches(" ago"))
            .filter(|ago| *ago < Duration::from_secs(100 * 365 * 24 * 60 * 60))
            .and_then(|ago| SystemTime::now().checked_sub(ago));
        let wrong = || {
            format!(
                "{text:?} is not RFC 3339 (2026-12-24T18:00:00Z), nor like 30s, 10m, 2h, 1d ago"
            )
        };
        ago.map(|time| Self(time.into())).ok_or_else(wrong)
    }
}

impl Narrowing {
    /// The filter, for letters in these states.
    pub(crate) fn filter(&self, states: Vec<LetterState>, died_of: Option<&str>) -> LetterFilter {
        LetterFilter {
            ids: Vec::new(),
            states,
            reason: died_of.map(ToOwned::to_owned),
            fingerprint: self.fingerprint.clone(),
            item: self.item.clone(),
            buyer: self.buyer.clone(),
            text: self.text.clone(),
            since: self.since.map(|when| when.0),
            before: self.until.map(|when| when.0),
        }
    }

    fn says_something(&self) -> bool {
        self.class.is_some() || self.filter(Vec::new(), None) != LetterFilter::default()
    }
}

impl Selection {
    /// The letters that are meant, in whatever state, after a check that there are such letters.
    pub(crate) async fn filter(
        &self,
        ledger: &Ledger,
        died_of: Option<&str>,
    ) -> anyhow::Result<LetterFilter> {
        let says_something = died_of.is_some() || self.narrowing.says_something();
        if self.ids.is_empty() && !self.all && !says_something {
            bail!(Misuse("say which letters: ids, a filter, or --all"));
        }
        let filter =
            LetterFilter { ids: self.ids.clone(), ..self.narrowing.filter(Vec::new(), died_of) };
        for id in &self.ids {
            if ledger.find_letter(*id).await?.is_none() {
                bail!("there is no letter {id}; `lastunit dlq list --state any` shows all");
            }
        }
        if !self.all && ledger.count_letters(&filter).await? == 0 {
            bail!(
                "no letter fits; `lastunit dlq list --state any` shows all, `dlq stats` counts them"
            );
        }
        Ok(filter)
    }

    /// Whether letters are named one by one.
    pub(crate) fn by_id(&self) -> bool {
        !self.ids.is_empty()
    }
}

impl Actor {
    pub(crate) fn name(&self) -> String {
        let login = || nix::unistd::User::from_uid(nix::unistd::geteuid()).ok()??.name.into();
        self.name
            .clone()
            .or_else(|| std::env::var("USER").ok())
            .filter(|name| !name.is_empty())
            .or_else(login)
            .unwrap_or_else(|| "unknown".to_owned())
    }
}

/// A command line that says too little or too much; it has an exit status of its own.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) &'static str);
