//! `lastunit explain`.

use std::process::ExitCode;

use clap::Args;
use reconciler::explain::{Message, Next, Story, explain};
use serde_json::{Value, json};
use shared::backends::Backends;
use shared::config::Config;
use shared::domain::{BuyerId, HoldStanding, ItemId, OrderState, OverdueStep, RequestId};
use shared::ledger::KeptLetter;

use crate::args::Output;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Item id
    #[arg(value_name = "ITEM")]
    item: ItemId,
    /// Request id, as the answer to a purchase names it
    #[arg(value_name = "REQUEST")]
    request: RequestId,
    /// Who bought, if neither order nor letter says it: tells the bucket in which the hold is
    #[arg(long, value_name = "BUYER")]
    buyer: Option<BuyerId>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(config: &Config, args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let ExplainArgs { item, request, buyer, output } = args;
    let backends = Backends::open(config, "operator")?;
    let story = explain(config, &backends, &item, request, buyer.as_ref()).await?;
    let told = told(&item, &story);
    if output.json {
        output::json(&as_json(&item, request, &story, &told))?;
    } else {
        for line in &told {
            output::print(line)?;
        }
    }
    if story.next == Next::NeverSeen {
        eprintln!("lastunit: nobody knows of request {request} of {item}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The story, sentence by sentence.
fn told(item: &ItemId, story: &Story) -> Vec<String> {
    let mut told = Vec::new();
    match &story.item {
        None => told.push(format!("The ledger has no item {item}.")),
        Some(row) => {
            let window = row.sale.window;
            told.push(format!(
                "{item} is on sale from {} to {}; the ledger has {} of {} units left.",
                window.opens_at(),
                window.closes_at(),
                row.available,
                row.sale.total,
            ));
        }
    }
    told.push(hold(story));
    told.extend(story.letters.iter().map(letter));
    told.extend(message(&story.message));
    told.push(order(story));
    told.push(next(story));
    told
}

fn hold(story: &Story) -> String {
    let Some(watched) = &story.hold else {
        return if story.in_redis {
            "Redis holds nothing for the request, and remembers no verdict.".to_owned()
        } else {
            "The item is not in Redis, so nothing is known of a hold.".to_owned()
        };
    };
    let hold = &watched.hold;
    let (units, buyer, at) = (hold.quantity, &hold.buyer, watched.reserved_at);
    match &hold.standing {
        HoldStanding::Held => {
            format!(
                "{buyer} reserved {units} at {at}; Redis still holds that (reservation {}), and {} looks were taken at it.",
                hold.reservation_id, watched.tries
            )
        }
        HoldStanding::Confirmed => {
            format!(
                "{buyer} reserved {units} at {at}; the hold is confirmed (reservation {}).",
                hold.reservation_id
            )
        }
        HoldStanding::Restored(verdict) => {
            format!(
                "{buyer} reserved {units}; the stock of reservation {} went back, because of {verdict}.",
                hold.reservation_id
            )
        }
    }
}

fn letter(letter: &KeptLetter) -> String {
    format!(
        "Its {} is dead letter {}, {}: it died {} times, last at {} of {}: {}",
        letter.kind,
        letter.letter_id,
        letter.state,
        letter.attempts,
        letter.last_died_at.to_rfc3339(),
        letter.reason,
        letter.error
    )
}

fn message(message: &Message) -> Option<String> {
    match message {
        Message::Done => None,
        Message::Parked => Some("Its message is parked in the dead letters.".to_owned()),
        Message::Replaying => {
            Some("Its message is on its way again from the dead letters.".to_owned())
        }
        Message::Queued { partition, ready } => Some(format!(
            "Its message waits in orders.{partition}, where {ready} messages are ready."
        )),
        Message::Nowhere => {
            Some("Its message is in no queue; a consumer may have it in its hands.".to_owned())
        }
        Message::Unknown(error) => Some(format!("Where its message is cannot be said: {error}.")),
    }
}

fn order(story: &Story) -> String {
    let Some(order) = &story.order else {
        return "The ledger has not decided the request.".to_owned();
    };
    let units = order.quantity;
    match &order.state {
        OrderState::Confirmed => {
            format!(
                "The ledger has sold {units} to {} (reservation {}).",
                order.buyer, order.reservation_id
            )
        }
        OrderState::Rejected(reason) => format!("The ledger has rejected the request: {reason}."),
        OrderState::Expired(reason) => format!("The request is expired in the ledger: {reason}."),
    }
}

fn next(story: &Story) -> String {
    let when = story.next_look.map_or("at its next look".to_owned(), |at| format!("at {at}"));
    match &story.next {
        Next::NeverSeen => "Nothing will happen: nobody knows of such a request.".to_owned(),
        Next::Nothing => "Nothing will happen any more.".to_owned(),
        Next::Operator => {
            "Nothing happens until an operator replays or discards the letter; its stock stays held.".to_owned()
        }
        Next::Consumer => format!(
            "A consumer decides it as soon as it takes the message; the reconciler looks again {when}."
        ),
        Next::Reconciler(step) => match step {
            OverdueStep::Confirm => format!("The reconciler confirms the hold {when}, unless a consumer does before."),
            OverdueStep::Restore(verdict) => format!("The reconciler gives its stock back {when} ({verdict}), unless the compensator does before."),
            _ => format!("The reconciler publishes it again {when}, unless it is decided before."),
        },
    }
}

fn as_json(item: &ItemId, request: RequestId, story: &Story, told: &[String]) -> Value {
    let place = match &story.message {
        Message::Done => "none_needed",
        Message::Parked => "parked",
        Message::Replaying => "replaying",
        Message::Queued { .. } => "queued",
        Message::Nowhere => "nowhere",
        Message::Unknown(_) => "unknown",
    };
    let ready = match &story.message {
        Message::Queued { partition, ready } => json!({ "partition": partition, "ready": ready }),
        _ => Value::Null,
    };
    let step = match &story.next {
        Next::NeverSeen => "never_seen",
        Next::Nothing => "nothing",
        Next::Operator => "operator",
        Next::Consumer => "consumer",
        Next::Reconciler(OverdueStep::Confirm) => "confirm",
        Next::Reconciler(OverdueStep::Restore(_)) => "restore",
        Next::Reconciler(_) => "publish_again",
    };
    let letter = |letter: &KeptLetter| {
        json!({
            "id": letter.letter_id.to_string(),
            "kind": letter.kind.as_str(),
            "state": letter.state.as_str(),
            "reason": letter.reason,
            "error": letter.error,
            "attempts": letter.attempts,
        })
    };
    json!({
        "item": item.to_string(),
        "request_id": request.to_string(),
        "hold": story.hold.as_ref().map(|watched| json!({
            "reservation_id": watched.hold.reservation_id.to_string(),
            "buyer": watched.hold.buyer.to_string(),
            "quantity": watched.hold.quantity.units(),
            "state": super::dlq::standing(&watched.hold.standing),
            "reserved_at": watched.reserved_at.to_string(),
            "looks": watched.tries,
        })),
        "message": { "where": place, "queue": ready },
        "order": story.order.as_ref().map(|order| json!({
            "state": order.verdict().to_string(),
            "reservation_id": order.reservation_id.to_string(),
            "buyer": order.buyer.to_string(),
            "quantity": order.quantity.units(),
        })),
        "letters": story.letters.iter().map(letter).collect::<Vec<_>>(),
        "next": { "step": step, "look_at": story.next_look.map(|at| at.to_string()) },
        "story": told,
    })
}
