//! One item in many buckets: it sells to the last unit, whatever is moved, divided anew, or cut short.

mod changing;
mod cut_short;
mod selling;
mod sold_out;
mod transfers;
mod visitors;

use std::net::SocketAddr;

use reconciler::{RebucketError, Rebucketed, WarmError};
use shared::domain::{BucketCount, BuyerId, ItemId, Sale, home_bucket};
use trials::buyer::{Answer, Buyer};
use trials::line::{Line, Service};
use trials::until::until;

fn count(buckets: u16) -> BucketCount {
    BucketCount::new(buckets).expect("a count")
}

/// A line that sells an item in so many buckets, and its two ingresses; nobody decides yet.
async fn selling(sale: &Sale, buckets: u16) -> (Line, [SocketAddr; 2]) {
    let mut line = Line::new().await;
    line.ledger.put_item(sale, Some(count(buckets))).await.expect("the sale in the ledger");
    line.warm(&sale.item).await;
    let doors = [line.ingress().await, line.ingress().await];
    (line, doors)
}

/// Two consumers and a compensator, as where many buy.
fn decide(line: &mut Line) {
    for service in [Service::Consumer, Service::Consumer, Service::Compensator] {
        line.start(service);
    }
}

/// Divides an item anew, and tries again as its error says: consumers may be behind, or a reconciler
/// may have the lock.
async fn divide(line: &Line, item: &ItemId, buckets: u16) -> Rebucketed {
    until("it is divided anew", async || {
        match reconciler::rebucket(&line.ledger, &line.stock, item, count(buckets)).await {
            Ok(done) => Some(done),
            Err(RebucketError::StillHeld { .. } | RebucketError::Warm(WarmError::Lock(_))) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

/// A buyer's name whose home is this bucket; another one for each turn.
fn who_lives_in(bucket: u16, buckets: u16, turn: usize) -> String {
    let names = (0..).map(|number| format!("buyer-{turn}-{number}"));
    let lives_there = |name: &String| {
        let buyer: BuyerId = name.parse().expect("a buyer");
        home_bucket(&buyer, count(buckets)) == bucket
    };
    names.into_iter().find(lives_there).expect("somebody lives there")
}

/// Buys as a good client does, which must be accepted and become an order.
async fn buys(door: SocketAddr, name: &str, key: &str, quantity: u32) -> Answer {
    let mut buyer = Buyer::new(door, name);
    let accepted = buyer.buy_patiently("shoe", key, quantity).await;
    assert!(accepted.is_accepted(), "{name} {key}: {accepted:?}");
    assert_eq!(buyer.final_state(&accepted).await, "confirmed", "{name} {key}");
    accepted
}
