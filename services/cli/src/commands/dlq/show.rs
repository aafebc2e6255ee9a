//! `lastunit dlq show`.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use shared::config::Config;
use shared::domain::{HoldStanding, Order};
use shared::ledger::{Ledger, LetterAct};
use shared::stock::FoundHold;
use uuid::Uuid;

use super::shown::{Judging, Shown, put_bytes, rfc3339};
use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The letter's id
    #[arg(value_name = "ID")]
    id: Uuid,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(config: &Config, args: ShowArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let Some(letter) = ledger.find_letter(args.id).await? else {
        bail!("there is no letter {}; `lastunit dlq list --state any` shows all", args.id);
    };
    let acts = ledger.letter_acts(args.id).await?;
    let shown = Judging::open(config, &ledger).await?.judge(vec![letter]).await;
    let Some(shown) = shown.into_iter().next() else { bail!("the letter was not judged") };
    if args.output.json { output::json(&in_full(&shown, &acts)) } else { print(&shown, &acts) }
}

fn in_full(shown: &Shown, acts: &[LetterAct]) -> Value {
    let mut full = shown.json();
    let Some(into) = full.as_object_mut() else { return full };
    put_bytes(into, "body", &shown.letter.body);
    if let Some(original) = &shown.letter.original {
        put_bytes(into, "original", original);
    }
    let headers = serde_json::from_str(&shown.letter.headers).unwrap_or(Value::Null);
    into.insert("headers".to_owned(), headers);
    let judged = shown.judged.as_ref();
    into.insert(
        "hold".to_owned(),
        judged.and_then(|judged| judged.hold.as_ref()).map_or(Value::Null, |hold| {
            json!({
                "reservation_id": hold.reservation_id.to_string(),
                "state": standing(&hold.standing),
                "quantity": hold.quantity.units(),
            })
        }),
    );
    into.insert(
        "order".to_owned(),
        judged.and_then(|judged| judged.order.as_ref()).map_or(Value::Null, |order| {
            json!({
                "reservation_id": order.reservation_id.to_string(),
                "state": order.verdict().to_string(),
            })
        }),
    );
    let act = |act: &LetterAct| {
        json!({
            "at": rfc3339(act.at),
            "who": act.who,
            "what": act.what,
            "outcome": act.outcome,
            "detail": act.detail,
        })
    };
    into.insert("history".to_owned(), acts.iter().map(act).collect());
    full
}

fn print(shown: &Shown, acts: &[LetterAct]) -> anyhow::Result<()> {
    let (letter, judged) = (&shown.letter, shown.judged.as_ref());
    let mut pairs = vec![
        ("id", letter.letter_id.to_string()),
        ("state", letter.state.to_string()),
        ("kind", letter.kind.to_string()),
        ("class", shown.class().to_owned()),
        ("a replay would end as", judged.map_or("-".to_owned(), |j| j.effect.to_string())),
        ("reason", letter.reason.clone()),
        ("error", letter.error.clone()),
        ("source", letter.source.clone()),
        ("deaths", letter.attempts.to_string()),
        ("first died", rfc3339(letter.first_died_at)),
        ("last died", rfc3339(letter.last_died_at)),
    ];
    if let Some(subject) = &letter.subject {
        pairs.extend([
            ("item", subject.item.to_string()),
            ("buyer", subject.buyer.to_string()),
            ("request id", subject.request_id.to_string()),
            ("reservation id", subject.reservation_id.to_string()),
        ]);
    }
    let hold = judged.and_then(|judged| judged.hold.as_ref());
    let order = judged.and_then(|judged| judged.order.as_ref());
    pairs.push(("hold in Redis", hold.map_or("none".to_owned(), hold_line)));
    pairs.push(("order in the ledger", order.map_or("none".to_owned(), order_line)));
    pairs.push(("headers", letter.headers.clone()));
    pairs.push(("bytes", String::from_utf8_lossy(&letter.body).into_owned()));
    if let Some(original) = &letter.original {
        pairs.push(("bytes as they came", String::from_utf8_lossy(original).into_owned()));
    }
    output::pairs(pairs)?;
    let row = |act: &LetterAct| {
        [
            rfc3339(act.at),
            act.who.clone(),
            act.what.clone(),
            act.outcome.clone(),
            act.detail.clone(),
        ]
    };
    output::table(["when", "who", "what", "outcome", "detail"], acts.iter().map(row).collect())
}

fn hold_line(hold: &FoundHold) -> String {
    format!(
        "{}, {} units, reservation {}",
        standing(&hold.standing),
        hold.quantity,
        hold.reservation_id
    )
}

fn order_line(order: &Order) -> String {
    format!("{}, {} units, reservation {}", order.verdict(), order.quantity, order.reservation_id)
}

pub(crate) fn standing(standing: &HoldStanding) -> String {
    match standing {
        HoldStanding::Held => "held".to_owned(),
        HoldStanding::Confirmed => "confirmed".to_owned(),
        HoldStanding::Restored(verdict) => format!("restored ({verdict})"),
    }
}
