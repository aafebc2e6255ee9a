//! Judges letters against the ledger and Redis as they are now.

use std::collections::HashMap;

use shared::contract::{decode_compensation, decode_reservations};
use shared::domain::{
    BuyerId, EnvironmentId, HoldStanding, ItemId, LetterClass, LetterContents, LetterEvidence,
    Order, ReplayEffect, RequestId, Reservation, ReservationId, classify, foresee,
};
use shared::ledger::{Foreseen, Foresight, KeptLetter, Ledger};
use shared::stock::{FoundHold, Stock};

use super::LettersError;

/// Judges page after page; what a replay of earlier pages would sell is gone for the later ones.
pub struct Judge {
    ledger: Ledger,
    stock: Stock,
    environment: EnvironmentId,
    earlier: Foresight,
}

/// A letter and what is known about it.
#[derive(Debug, Clone)]
pub struct Judged {
    pub letter: KeptLetter,
    pub contents: LetterContents,
    pub class: LetterClass,
    pub effect: ReplayEffect,
    pub order: Option<Order>,
    /// The record of its request in Redis, whoever's reservation it is of.
    pub hold: Option<FoundHold>,
}

/// What a letter's bytes say.
pub fn contents(letter: &KeptLetter, environment: EnvironmentId) -> LetterContents {
    contents_of(&letter.body, environment)
}

pub(super) fn contents_of(body: &[u8], environment: EnvironmentId) -> LetterContents {
    if let Ok(mut placed) = decode_reservations(body) {
        return match placed.reservations.pop() {
            _ if placed.environment != environment => LetterContents::Foreign(placed.environment),
            Some(reservation) if placed.reservations.is_empty() => {
                LetterContents::Reservation(reservation)
            }
            _ => LetterContents::Unreadable,
        };
    }
    match decode_compensation(body) {
        Ok(compensation) if compensation.environment != environment => {
            LetterContents::Foreign(compensation.environment)
        }
        Ok(compensation) => LetterContents::Compensation {
            request_id: compensation.request_id,
            reservation_id: compensation.reservation_id,
            item: compensation.item,
            buyer: compensation.buyer,
        },
        Err(_) => LetterContents::Unreadable,
    }
}

impl Judged {
    /// Whether its stock is still held for it.
    pub fn is_held(&self) -> bool {
        let hold =
            self.hold.as_ref().filter(|hold| Some(hold.reservation_id) == self.reservation_id());
        hold.is_some_and(|hold| hold.standing == HoldStanding::Held)
    }

    fn reservation_id(&self) -> Option<ReservationId> {
        match &self.contents {
            LetterContents::Reservation(reservation) => Some(reservation.reservation_id),
            LetterContents::Compensation { reservation_id, .. } => Some(*reservation_id),
            LetterContents::Foreign(_) | LetterContents::Unreadable => None,
        }
    }
}

impl Judge {
    /// Reads which environment it judges for.
    pub async fn open(ledger: &Ledger, stock: &Stock) -> Result<Self, LettersError> {
        Ok(Self {
            environment: ledger.environment().await?,
            ledger: ledger.clone(),
            stock: stock.clone(),
            earlier: Foresight::default(),
        })
    }

    pub fn environment(&self) -> EnvironmentId {
        self.environment
    }

    /// Judges a page of letters, as if they were replayed in this order.
    pub async fn judge(&mut self, letters: Vec<KeptLetter>) -> Result<Vec<Judged>, LettersError> {
        let read = |letter: KeptLetter| (contents(&letter, self.environment), letter);
        let letters: Vec<_> = letters.into_iter().map(read).collect();
        let (mut reservations, mut requests, mut items) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_item: HashMap<ItemId, Vec<(BuyerId, RequestId)>> = HashMap::new();
        for (contents, _) in &letters {
            let (item, buyer, request_id) = match contents {
                LetterContents::Reservation(reservation) => {
                    let Reservation { item, buyer, request_id, .. } = reservation;
                    reservations.push(reservation.clone());
                    (item, buyer, *request_id)
                }
                LetterContents::Compensation { item, buyer, request_id, .. } => {
                    requests.push(*request_id);
                    items.push(item.clone());
                    (item, buyer, *request_id)
                }
                LetterContents::Foreign(_) | LetterContents::Unreadable => continue,
            };
            by_item.entry(item.clone()).or_default().push((buyer.clone(), request_id));
        }
        let foreseen =
            self.ledger.foresee(&reservations, &requests, &items, &mut self.earlier).await?;
        let holds = self.holds(by_item).await?;
        let mut decisions = foreseen.decisions.iter();
        let judge = |(contents, letter): (LetterContents, KeptLetter)| {
            let decision = matches!(contents, LetterContents::Reservation(_))
                .then(|| decisions.next())
                .flatten();
            judged(contents, letter, decision, &foreseen, &holds)
        };
        Ok(letters.into_iter().map(judge).collect())
    }

    async fn holds(
        &self,
        by_item: HashMap<ItemId, Vec<(BuyerId, RequestId)>>,
    ) -> Result<HashMap<RequestId, FoundHold>, LettersError> {
        let mut found = HashMap::new();
        for (item, requests) in by_item {
            let holds = self.stock.find_holds(&item, &requests).await?;
            for ((_, request_id), watched) in requests.into_iter().zip(holds) {
                found.extend(watched.map(|watched| (request_id, watched.hold)));
            }
        }
        Ok(found)
    }
}

fn judged(
    contents: LetterContents,
    letter: KeptLetter,
    decision: Option<&shared::domain::Decision>,
    foreseen: &Foreseen,
    holds: &HashMap<RequestId, FoundHold>,
) -> Judged {
    let (request_id, item) = match &contents {
        LetterContents::Reservation(reservation) => {
            (Some(reservation.request_id), Some(&reservation.item))
        }
        LetterContents::Compensation { request_id, item, .. } => (Some(*request_id), Some(item)),
        LetterContents::Foreign(_) | LetterContents::Unreadable => (None, None),
    };
    let order = request_id.and_then(|request_id| foreseen.orders.get(&request_id));
    let hold = request_id.and_then(|request_id| holds.get(&request_id));
    let evidence = LetterEvidence {
        order,
        decision,
        hold: hold.map(|hold| (hold.reservation_id, &hold.standing)),
        window: item.and_then(|item| foreseen.windows.get(item).copied()),
        now: foreseen.now,
    };
    let (class, effect) = (classify(&contents, &evidence), foresee(&contents, &evidence));
    Judged { class, effect, order: order.cloned(), hold: hold.cloned(), contents, letter }
}
