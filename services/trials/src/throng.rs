//! Buyers who go on buying through whatever befalls the line, look their orders up meanwhile, and
//! never hear two things of one purchase.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::buyer::{Answer, Buyer, at_once};
use crate::until::{PATIENCE, Waiting, until, within};

const SHOPPERS: usize = 6;

/// Their pace, so that a sale of some hundred units outlasts what happens to it.
const PACE: Duration = Duration::from_millis(30);

/// What counts as more than before.
const SOME: usize = 40;

/// What a Redis says to its clients, and no buyer may hear.
const OF_REDIS: [&str; 8] =
    ["CROSSSLOT", "MOVED", "ASK ", "TRYAGAIN", "NOSCRIPT", "READONLY", "CLUSTERDOWN", "LOADING"];

/// Everybody who buys.
pub struct Throng {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    heard: Arc<Heard>,
    shopping: JoinHandle<Vec<Shopper>>,
}

/// How the purchases ended that were accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    pub confirmed: u64,
    pub rejected: u64,
}

#[derive(Default)]
struct Heard {
    accepted: AtomicUsize,
    /// How often each problem was told.
    problems: Mutex<BTreeMap<String, usize>>,
}

/// One of them: a unit at a time, each under a new key, as good clients do.
struct Shopper {
    buyer: Buyer,
    item: String,
    bought: Vec<Bought>,
    heard: Arc<Heard>,
}

struct Bought {
    key: String,
    /// Where the order is found.
    path: String,
    /// How it ended, once that was told.
    end: Option<String>,
}

impl Throng {
    pub fn begin(address: SocketAddr, item: &str) -> Self {
        let (stop, heard) = <(Arc<AtomicBool>, Arc<Heard>)>::default();
        let shoppers: Vec<_> = (0..SHOPPERS)
            .map(|number| Shopper {
                buyer: Buyer::new(address, format!("shopper-{number}")),
                item: item.to_owned(),
                bought: Vec::new(),
                heard: Arc::clone(&heard),
            })
            .collect();
        let stopped = Arc::clone(&stop);
        let shopping = tokio::spawn(at_once(shoppers.into_iter().map(move |shopper| {
            let stopped = Arc::clone(&stopped);
            async move { shopper.shop(&stopped).await }
        })));
        Self { address, stop, heard, shopping }
    }

    /// Waits until some more were accepted: the sale goes on.
    pub async fn until_more(&self, bound: Duration) {
        let enough = self.heard.accepted.load(Ordering::Relaxed) + SOME;
        within(bound, "the sale goes on", async || {
            (self.heard.accepted.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    /// How often buyers were told this problem.
    pub fn told(&self, code: &str) -> usize {
        self.heard.problems().get(code).copied().unwrap_or(0)
    }

    /// Waits until buyers are told this problem, more often than before.
    pub async fn until_told(&self, code: &str) {
        let before = self.told(code);
        until(&format!("told {code}"), async || (self.told(code) > before).then_some(())).await;
    }

    /// Every problem that buyers were told.
    pub fn problems(&self) -> Vec<String> {
        self.heard.problems().keys().cloned().collect()
    }

    /// Ends the shopping: every accepted purchase has a final state, that of before if it was told
    /// before, and its key repeated says the same.
    pub async fn end(self) -> Ends {
        self.stop.store(true, Ordering::Relaxed);
        let shoppers = self.shopping.await.expect("no shopper panics");
        let address = self.address;
        let ends = at_once(shoppers.into_iter().map(|mut shopper| async move {
            shopper.buyer = Buyer::new(address, shopper.buyer.name);
            shopper.settle_up().await
        }))
        .await;
        let mut all = Ends::default();
        for ends in ends {
            all.confirmed += ends.confirmed;
            all.rejected += ends.rejected;
        }
        all
    }
}

impl Heard {
    fn problems(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, usize>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, problem: &str) {
        *self.problems().entry(problem.to_owned()).or_default() += 1;
    }
}

/// Its code. A problem is told as the interface promises, and not in the words of a backend.
fn problem(answer: &Answer) -> &str {
    let code = answer.text("code");
    answer.assert_problem(answer.status, code, None);
    let said = answer.body.to_string();
    for word in OF_REDIS {
        assert!(!said.contains(word), "{answer:?}");
    }
    code
}

impl Shopper {
    async fn shop(mut self, stopped: &AtomicBool) -> Self {
        let mut turn = 0;
        while !stopped.load(Ordering::Relaxed) {
            self.buy().await;
            // The newest order and an earlier one, which has been final for long.
            self.look(self.bought.len().saturating_sub(1)).await;
            self.look(turn % self.bought.len().max(1)).await;
            turn += 7;
            tokio::time::sleep(PACE).await;
        }
        self
    }

    /// A refusal or a problem leaves the key to the next turn.
    async fn buy(&mut self) {
        let key = format!("key-{}", self.bought.len());
        let Ok(answer) = self.buyer.try_buy(&self.item, &key, 1).await else {
            return self.heard.note("no answer");
        };
        match answer.status {
            200 | 202 => {
                let path = answer.location();
                self.bought.push(Bought { key, path, end: None });
                self.heard.accepted.fetch_add(1, Ordering::Relaxed);
                self.take_in(self.bought.len() - 1, &answer);
            }
            409 | 503 => self.heard.note(problem(&answer)),
            _ => panic!("{answer:?}"),
        }
    }

    /// An order that was accepted is found whenever there is an answer at all.
    async fn look(&mut self, number: usize) {
        let Some(bought) = self.bought.get(number) else { return };
        let path = bought.path.clone();
        match self.buyer.try_get(&path).await {
            Ok(answer) if answer.status == 503 => self.heard.note(problem(&answer)),
            Ok(answer) => self.take_in(number, &answer),
            Err(_) => self.heard.note("no answer"),
        }
    }

    /// What is final stays what it is; above all it does not become `reserved` again.
    fn take_in(&mut self, number: usize, answer: &Answer) {
        let (name, bought) = (&self.buyer.name, &mut self.bought[number]);
        assert!(matches!(answer.status, 200 | 202), "{name} {}: {answer:?}", bought.key);
        let status = answer.text("status").to_owned();
        match &bought.end {
            Some(end) => assert_eq!(*end, status, "{name} {}: {answer:?}", bought.key),
            None if status == "reserved" => {}
            None => bought.end = Some(status),
        }
    }

    async fn settle_up(&mut self) -> Ends {
        let mut ends = Ends::default();
        for number in 0..self.bought.len() {
            let path = self.bought[number].path.clone();
            let found = self.until_final(&path).await;
            self.take_in(number, &found);
            let key = self.bought[number].key.clone();
            let again = self.buyer.buy_patiently(&self.item, &key, 1).await;
            self.take_in(number, &again);
            match found.text("status") {
                "confirmed" => ends.confirmed += 1,
                "rejected" => ends.rejected += 1,
                other => panic!("nobody lets {} {key} be {other}", self.buyer.name),
            }
        }
        ends
    }
    async fn until_final(&mut self, path: &str) -> Answer {
        let waiting = Waiting::for_at_most(PATIENCE);
        loop {
            match self.buyer.try_get(path).await {
                Ok(answer) if answer.status == 200 && answer.text("status") != "reserved" => {
                    return answer;
                }
                _ => waiting.a_moment("the order is final").await,
            }
        }
    }
}
