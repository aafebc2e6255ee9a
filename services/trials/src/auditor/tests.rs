//! The auditor believes nothing that cannot be, and complains of nothing that can.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::json;

use super::{Asked, Auditor, Heard, Purchase, Terms};
use crate::buyer::Answer;

const TERMS: Terms = Terms { total: 4, limit_per_buyer: 3 };

fn purchase(buyer: &str, key: &str, quantity: u32) -> Purchase {
    Purchase { buyer: buyer.to_owned(), key: key.to_owned(), quantity }
}

/// Questions that were asked one second after the other and answered within half a second.
struct Told {
    begun: Instant,
    heard: Vec<Heard>,
}

impl Told {
    fn nothing() -> Self {
        Self { begun: Instant::now(), heard: Vec::new() }
    }

    fn then(mut self, purchase: &Purchase, asked: Asked, status: u16, word: &str) -> Self {
        let at = self.begun + Duration::from_secs(self.heard.len() as u64);
        let body = json!({
            "status": if status < 300 { json!(word) } else { json!(status) },
            "code": word,
            "quantity": purchase.quantity,
            "request_id": format!("{} {}", purchase.buyer, purchase.key),
        });
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from(1))]);
        let until = at + Duration::from_millis(500);
        let answer = Some(Answer { status, headers, body });
        self.heard.push(Heard { purchase: purchase.clone(), asked, at, until, answer });
        self
    }

    fn wrong(self) -> Vec<String> {
        self.wrong_but_for(&[])
    }

    fn wrong_but_for(self, asked_back: &[Purchase]) -> Vec<String> {
        let asked_back: HashSet<_> = asked_back.iter().cloned().collect();
        Auditor::new(TERMS, self.heard, asked_back).judge()
    }
}

use Asked::{HowItStands, ToBuy};

#[test]
fn a_sale_as_it_should_be_is_not_complained_of() {
    let (ann, bob, cid) =
        (purchase("ann", "1", 3), purchase("bob", "1", 1), purchase("cid", "1", 1));
    let wrong = Told::nothing()
        .then(&ann, ToBuy, 503, "unknown_outcome")
        .then(&ann, ToBuy, 202, "reserved")
        .then(&bob, ToBuy, 202, "reserved")
        .then(&cid, ToBuy, 409, "sold_out")
        .then(&purchase("ann", "2", 1), ToBuy, 409, "limit_reached")
        .then(&cid, HowItStands, 404, "unknown_order")
        .then(&ann, HowItStands, 200, "reserved")
        .then(&ann, HowItStands, 200, "confirmed")
        .then(&ann, ToBuy, 200, "confirmed")
        .then(&bob, HowItStands, 200, "confirmed")
        .wrong();
    assert_eq!(wrong, [] as [String; 0]);
}

#[test]
fn each_lie_is_found() {
    let (ann, bob) = (purchase("ann", "1", 3), purchase("bob", "1", 3));
    let accepted = || Told::nothing().then(&ann, ToBuy, 202, "reserved");
    let sold = || accepted().then(&ann, HowItStands, 200, "confirmed");
    let lies = [
        (accepted(), "never final"),
        (accepted().then(&ann, HowItStands, 200, "rejected"), "and then rejected"),
        (accepted().then(&ann, ToBuy, 409, "sold_out"), "accepted, and later told 409"),
        (accepted().then(&ann, HowItStands, 404, "unknown_order"), "accepted, and later told 404"),
        (sold().then(&ann, HowItStands, 200, "reserved"), "confirmed, and later told"),
        (sold().then(&ann, ToBuy, 200, "expired"), "confirmed, and later told"),
        (sold().then(&bob, ToBuy, 200, "confirmed"), "6 units are confirmed, 4 were on sale"),
        (sold().then(&purchase("ann", "2", 1), ToBuy, 200, "confirmed"), "the limit is 3"),
        (sold().then(&purchase("bob", "1", 1), ToBuy, 409, "sold_out"), "sold_out for 1 units"),
        (sold().then(&bob, ToBuy, 409, "limit_reached"), "limit_reached for 3 units"),
        (sold().then(&bob, ToBuy, 500, "internal_error"), "impossible"),
        (sold().then(&bob, ToBuy, 503, "not_warm"), "impossible"),
    ];
    for (told, lie) in lies {
        let wrong = told.wrong();
        assert!(wrong.iter().any(|wrong| wrong.contains(lie)), "{lie}: {wrong:?}");
    }
}

#[test]
fn one_key_is_one_request_of_one_quantity() {
    let ann = purchase("ann", "1", 3);
    let told = |change: fn(&mut Answer)| {
        let mut told =
            Told::nothing().then(&ann, ToBuy, 200, "confirmed").then(&ann, ToBuy, 200, "confirmed");
        change(told.heard[1].answer.as_mut().expect("an answer"));
        told.wrong()
    };
    assert_eq!(told(|_| ()), [] as [String; 0]);
    assert!(!told(|answer| answer.body["quantity"] = json!(2)).is_empty());
    assert!(!told(|answer| answer.body["request_id"] = json!("another")).is_empty());
}

#[test]
fn only_what_was_asked_back_may_expire() {
    let ann = purchase("ann", "1", 3);
    let told = || {
        Told::nothing().then(&ann, ToBuy, 202, "reserved").then(&ann, HowItStands, 200, "expired")
    };
    assert!(!told().wrong().is_empty());
    assert_eq!(told().wrong_but_for(std::slice::from_ref(&ann)), [] as [String; 0]);
}

#[test]
fn a_refusal_is_just_when_others_may_have_had_the_stock_at_that_moment() {
    let (ann, bob) = (purchase("ann", "1", 3), purchase("bob", "1", 2));
    // Ann's purchase was under way when bob was refused, and was confirmed later.
    let told = Told::nothing()
        .then(&ann, ToBuy, 503, "unknown_outcome")
        .then(&bob, ToBuy, 409, "sold_out")
        .then(&ann, HowItStands, 200, "confirmed");
    assert_eq!(told.wrong(), [] as [String; 0]);
    // Nobody had asked yet.
    let told = Told::nothing()
        .then(&bob, ToBuy, 409, "sold_out")
        .then(&ann, ToBuy, 202, "reserved")
        .then(&ann, HowItStands, 200, "confirmed");
    assert_eq!(told.wrong().len(), 1);
}
