//! One request's whole story: the hold, the message, the order, the letters, and what comes next.

use std::time::Duration;

use shared::backends::Backends;
use shared::config::Config;
use shared::domain::{
    BuyerId, HoldStanding, ItemId, LetterKind, LetterState, Order, OverdueStep, RequestId,
    Reservation, UnixMillis, Whereabouts, finish_overdue, partition,
};
use shared::ledger::{Item, KeptLetter};
use shared::queue::ready_messages;
use shared::stock::WatchedHold;

use crate::letters::LettersError;

/// Everything that is known of a request.
#[derive(Debug, Clone)]
pub struct Story {
    pub item: Option<Item>,
    /// Whether the item is in Redis at all.
    pub in_redis: bool,
    pub hold: Option<WatchedHold>,
    /// When the reconciler looks at the hold next.
    pub next_look: Option<UnixMillis>,
    pub message: Message,
    pub order: Option<Order>,
    pub letters: Vec<KeptLetter>,
    pub next: Next,
}

/// Where the request's message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The request is decided, or there is none: no message is needed.
    Done,
    /// In the dead letters.
    Parked,
    /// On its way again from the dead letters.
    Replaying,
    /// Probably in its partition, behind or among so many.
    Queued { partition: u16, ready: u32 },
    /// Not to be seen anywhere; it may be in a consumer's hands.
    Nowhere,
    /// The broker could not be asked.
    Unknown(String),
}

/// What will happen next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nobody knows of such a request.
    NeverSeen,
    /// All is said and done.
    Nothing,
    /// An operator has to replay or discard its letter.
    Operator,
    /// A consumer decides it.
    Consumer,
    /// The reconciler takes this step at its next look.
    Reconciler(OverdueStep),
}

/// Puts the story of a request together.
pub async fn explain(
    config: &Config,
    backends: &Backends,
    item: &ItemId,
    request_id: RequestId,
    buyer: Option<&BuyerId>,
) -> Result<Story, LettersError> {
    let Backends { ledger, stock, .. } = backends;
    let row = ledger.find_item(item).await?;
    let letters = ledger.letters_of_request(request_id).await?;
    let order = ledger.find_order(request_id).await?;
    let known_buyer = buyer
        .or(order.as_ref().map(|order| &order.buyer))
        .or(letters.iter().find_map(|letter| letter.subject.as_ref()).map(|s| &s.buyer));
    let in_redis = stock.bucket_count(item).await?.is_some();
    let hold = match known_buyer {
        Some(buyer) => {
            stock.find_holds(item, &[(buyer.clone(), request_id)]).await?.pop().flatten()
        }
        None => stock.search_hold(item, request_id).await?,
    };
    let next_look = match &hold {
        Some(found) => stock.next_look(item, &found.hold.buyer, request_id).await?,
        None => None,
    };
    let message = match &order {
        Some(_) => Message::Done,
        None => whereabouts(config, backends, item, hold.as_ref(), &letters).await?,
    };
    let next = next(item, request_id, hold.as_ref(), order.as_ref(), &message);
    Ok(Story { item: row, in_redis, hold, next_look, message, order, letters, next })
}

async fn whereabouts(
    config: &Config,
    backends: &Backends,
    item: &ItemId,
    hold: Option<&WatchedHold>,
    letters: &[KeptLetter],
) -> Result<Message, LettersError> {
    let mut reservations = letters.iter().filter(|letter| letter.kind == LetterKind::Reservation);
    if reservations.clone().any(|letter| letter.state == LetterState::Parked) {
        return Ok(Message::Parked);
    }
    if reservations.any(|letter| letter.state == LetterState::Replaying) {
        return Ok(Message::Replaying);
    }
    let Some(hold) = hold.filter(|watched| watched.hold.standing == HoldStanding::Held) else {
        return Ok(Message::Done);
    };
    let partition = partition(item, config.rabbitmq.partitions);
    let ready = match ready_messages(&config.rabbitmq, &config.namespace).await {
        Ok(ready) => ready.get(&partition).copied().unwrap_or(0),
        Err(error) => return Ok(Message::Unknown(error.to_string())),
    };
    let kept = backends.ledger.kept_items(Duration::ZERO).await?;
    let decided_until =
        kept.iter().find(|kept| kept.item.sale.item == *item).map(|kept| kept.decided_until);
    let is_behind = decided_until.is_none_or(|until| hold.reserved_at >= until);
    Ok(if ready > 0 && is_behind { Message::Queued { partition, ready } } else { Message::Nowhere })
}

fn next(
    item: &ItemId,
    request_id: RequestId,
    watched: Option<&WatchedHold>,
    order: Option<&Order>,
    message: &Message,
) -> Next {
    match message {
        Message::Parked => return Next::Operator,
        Message::Replaying => return Next::Consumer,
        _ => {}
    }
    let Some(WatchedHold { hold, reserved_at, .. }) = watched else {
        return if order.is_some() { Next::Nothing } else { Next::NeverSeen };
    };
    if hold.standing != HoldStanding::Held {
        return Next::Nothing;
    }
    let reservation = Reservation {
        request_id,
        reservation_id: hold.reservation_id,
        item: item.clone(),
        // The step depends on neither; a hold of another epoch is not found.
        epoch: 0,
        buyer: hold.buyer.clone(),
        quantity: hold.quantity,
        reserved_at: *reserved_at,
    };
    let whereabouts = match message {
        Message::Queued { .. } => Whereabouts::Queued,
        _ => Whereabouts::Unknown,
    };
    match finish_overdue(&reservation, order, whereabouts) {
        OverdueStep::LeaveParked => Next::Operator,
        OverdueStep::LeaveQueued => Next::Consumer,
        step => Next::Reconciler(step),
    }
}
