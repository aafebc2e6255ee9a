//! Who buys in a round of the soak, and what they hear: good clients, people in a hurry, people who
//! press the button on several devices, and people who leave.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use load::client::Client;
use shared::domain::RequestId;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::auditor::{Asked, Heard, Purchase};
use crate::buyer::{Answer, Buyer};

/// A purchase that somebody has in mind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub purchase: Purchase,
    pub at: Duration,
    pub manner: Manner,
}

/// How somebody goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Repeats the same key until there is an answer.
    Patient,
    /// The same from several connections at once.
    Manifold(u32),
    /// Hangs up unanswered, and repeats the same key after that.
    HangsUp(Duration),
    /// Hangs up unanswered, and never comes back.
    Leaves(Duration),
}

/// The wishes of a round, a pure function of a seed: one or two of each buyer, within so long.
pub fn wishes(seed: u64, buyers: u32, within: Duration) -> Vec<Wish> {
    // Not the random numbers of the faults.
    let mut rng = Rng::with_seed(!seed);
    let mut wishes = Vec::new();
    for number in 1..=buyers {
        for key in 1..=rng.u32(1..=2) {
            let soon = Duration::from_millis(rng.u64(1..=50));
            let manner = match rng.u32(..10) {
                0..4 => Manner::Patient,
                4..6 => Manner::Manifold(rng.u32(2..=3)),
                6..8 => Manner::HangsUp(soon),
                _ => Manner::Leaves(soon),
            };
            let (buyer, key) = (format!("buyer-{number}"), format!("key-{key}"));
            wishes.push(Wish {
                purchase: Purchase { buyer, key, quantity: rng.u32(1..=3) },
                at: Duration::from_millis(rng.u64(..within.as_millis() as u64)),
                manner,
            });
        }
    }
    wishes
}

/// Where, what and until when.
#[derive(Clone)]
pub struct Scene {
    pub item: String,
    pub ingresses: Vec<SocketAddr>,
    /// Time is up: nobody asks any more.
    pub enough: CancellationToken,
}

/// Lets everybody buy; returns all that was said once everybody knows how their purchase ended.
pub async fn buy_all(scene: &Scene, wishes: &[Wish], begun: Instant) -> Vec<Heard> {
    let mut buying = Vec::new();
    for (number, wish) in wishes.iter().enumerate() {
        let connections = if let Manner::Manifold(many) = wish.manner { many } else { 1 };
        for connection in 0..connections {
            let visit = Visit::of(scene, &wish.purchase, number * 4 + connection as usize);
            let (at, manner) = (begun + wish.at, wish.manner);
            buying.push(tokio::spawn(async move {
                sleep_until(at.into()).await;
                visit.go(manner).await
            }));
        }
    }
    join_all(buying).await.into_iter().flat_map(|heard| heard.expect("no buyer panics")).collect()
}

/// Asks once more how every purchase stands, at every ingress, and repeats those that are known. A
/// refused one is left alone: its key may still buy, if something was given back since.
pub async fn ask_everybody(scene: &Scene, wishes: &[Wish]) -> Vec<Heard> {
    let asking = wishes.iter().enumerate().map(|(number, wish)| {
        let mut visit = Visit::of(scene, &wish.purchase, number);
        async move {
            for _ in 0..visit.scene.ingresses.len() {
                let stands = visit.ask_until_told(Asked::HowItStands).await;
                if stands.is_some_and(|answer| answer.status == 200) {
                    visit.ask_until_told(Asked::ToBuy).await;
                }
                visit.turn();
            }
            visit.heard
        }
    });
    join_all(asking).await.concat()
}

/// One device on which somebody buys.
struct Visit {
    scene: Scene,
    purchase: Purchase,
    request_id: RequestId,
    buyer: Buyer,
    turns: usize,
    rng: Rng,
    heard: Vec<Heard>,
}

impl Visit {
    fn of(scene: &Scene, purchase: &Purchase, number: usize) -> Self {
        let scene = scene.clone();
        let address = scene.ingresses[number % scene.ingresses.len()];
        let item = scene.item.parse().expect("an item");
        Self {
            request_id: crate::messages::request_id(&item, &purchase.buyer, &purchase.key),
            buyer: Buyer::new(address, purchase.buyer.as_str()),
            purchase: purchase.clone(),
            turns: number,
            rng: Rng::with_seed(number as u64),
            heard: Vec::new(),
            scene,
        }
    }

    async fn go(mut self, manner: Manner) -> Vec<Heard> {
        if let Manner::HangsUp(patience) | Manner::Leaves(patience) = manner {
            let answer = self.ask(Asked::ToBuy, patience).await;
            if answer.is_none() && matches!(manner, Manner::Leaves(_)) {
                return self.heard;
            }
        }
        let answer = self.ask_until_told(Asked::ToBuy).await;
        if answer.is_some_and(|answer| matches!(answer.status, 200 | 202)) {
            self.follow().await;
        }
        self.heard
    }

    /// Accepted: it is followed until it is final. Some go on asking, and must hear the same.
    async fn follow(&mut self) {
        let mut more = self.rng.u32(1..=8);
        while more > 0 && !self.scene.enough.is_cancelled() {
            let asked = if self.rng.u32(..4) == 0 { Asked::ToBuy } else { Asked::HowItStands };
            let answer = self.ask_until_told(asked).await;
            if answer.is_some_and(|answer| answer.text("status") != "reserved") {
                more -= 1;
            }
            self.pause(20..250).await;
        }
    }

    /// Asks until there is an answer other than *try again*.
    async fn ask_until_told(&mut self, asked: Asked) -> Option<Answer> {
        while !self.scene.enough.is_cancelled() {
            // Some wait as long as it takes, some lose patience and ask again, elsewhere.
            let patience = Duration::from_millis(self.rng.u64(500..6_000));
            match self.ask(asked, patience).await {
                Some(answer) if answer.status != 503 => return Some(answer),
                _ => self.pause(50..400).await,
            }
            self.turn();
        }
        None
    }

    async fn ask(&mut self, asked: Asked, patience: Duration) -> Option<Answer> {
        let at = Instant::now();
        let Purchase { key, quantity, .. } = &self.purchase;
        let item = &self.scene.item;
        let answer = match asked {
            Asked::ToBuy => timeout(patience, self.buyer.try_buy(item, key, *quantity)).await,
            Asked::HowItStands => {
                let path = format!("/v1/items/{item}/orders/{}", self.request_id);
                timeout(patience, self.buyer.try_get(&path)).await
            }
        };
        let answer = answer.ok().and_then(Result::ok);
        if answer.is_none() {
            // Whatever still comes on that connection is for nobody.
            self.reconnect();
        }
        let (purchase, until) = (self.purchase.clone(), Instant::now());
        self.heard.push(Heard { purchase, asked, at, until, answer: answer.clone() });
        answer
    }

    /// Goes to the next ingress.
    fn turn(&mut self) {
        self.turns += 1;
        self.reconnect();
    }

    fn reconnect(&mut self) {
        let ingresses = &self.scene.ingresses;
        self.buyer.client = Client::new(ingresses[self.turns % ingresses.len()]);
    }

    async fn pause(&mut self, milliseconds: std::ops::Range<u64>) {
        sleep(Duration::from_millis(self.rng.u64(milliseconds))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_wishes_and_every_manner_comes_up() {
        let within = Duration::from_secs(3);
        let made = wishes(7, 100, within);
        assert_eq!(made, wishes(7, 100, within));
        assert_ne!(made, wishes(8, 100, within));
        assert!(made.iter().all(|wish| wish.at < within));
        let has = |manner: fn(&Manner) -> bool| made.iter().any(|wish| manner(&wish.manner));
        assert!(has(|manner| *manner == Manner::Patient));
        assert!(has(|manner| matches!(manner, Manner::Manifold(2..))));
        assert!(has(|manner| matches!(manner, Manner::HangsUp(_))));
        assert!(has(|manner| matches!(manner, Manner::Leaves(_))));
    }
}
