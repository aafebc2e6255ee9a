//! Many buyers who wait at a barrier and buy at once. Each behaves like a good client: on a 503, or
//! when it gets no answer, it tries the same key again after a pause.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use hyper::header::RETRY_AFTER;
use hyper::{Method, StatusCode};
use tokio::sync::Barrier;

use crate::client::{Client, NoAnswer, Response};

/// The crowd and what it wants.
#[derive(Debug, Clone)]
pub struct Plan {
    pub address: SocketAddr,
    pub item: String,
    pub buyers: u32,
    pub quantity: u32,
    /// Connections that the buyers share, first come first served: an operating system has only so
    /// many.
    pub connections: u32,
    /// Who comes first.
    pub seed: u64,
    /// Attempts after which a buyer gives up.
    pub attempts: u32,
}

/// How one buyer fared.
#[derive(Debug, Clone)]
pub struct Fared {
    pub buyer: String,
    pub outcome: Outcome,
    /// From the first attempt to the final answer.
    pub took: Duration,
    pub attempts: u32,
}

/// What a buyer was told in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted; the path under which the order is found.
    Accepted {
        order: String,
    },
    SoldOut,
    /// Any other answer, or none.
    Error(String),
}

/// Buyers who are connected and wait.
pub struct Crowd {
    plan: Plan,
    waiting: Vec<(Client, Vec<String>)>,
}

/// Connections that are opened side by side, well below any backlog of a listening socket.
const CONNECTING: usize = 64;

impl Crowd {
    /// Lets everybody connect. `on_waiting` is told how many more wait.
    pub async fn gather(plan: Plan, on_waiting: impl Fn(u64)) -> Self {
        let connecting = queues(&plan).into_iter().map(|queue| {
            let on_waiting = &on_waiting;
            let mut client = Client::new(plan.address);
            async move {
                // Whoever cannot connect now tries again with its first purchase.
                let _ = client.connect().await;
                on_waiting(queue.len() as u64);
                (client, queue)
            }
        });
        let waiting = stream::iter(connecting).buffer_unordered(CONNECTING).collect().await;
        Self { plan, waiting }
    }

    /// Lets everybody buy at once. `on_answer` is told of each buyer that has its answer. Returns
    /// how each fared, and when it began.
    pub async fn buy(self, on_answer: impl Fn() + Clone + Send + 'static) -> (Vec<Fared>, Instant) {
        let plan = Arc::new(self.plan);
        let barrier = Arc::new(Barrier::new(self.waiting.len() + 1));
        let buying = self.waiting.into_iter().map(|(mut client, queue)| {
            let (plan, barrier, on_answer) =
                (Arc::clone(&plan), Arc::clone(&barrier), on_answer.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                let mut fared = Vec::with_capacity(queue.len());
                for buyer in queue {
                    fared.push(buy_one(&mut client, &plan, buyer).await);
                    on_answer();
                }
                fared
            })
        });
        let buying: Vec<_> = buying.collect();
        barrier.wait().await;
        let begun = Instant::now();
        let fared = join_all(buying).await;
        let fared = fared.into_iter().flat_map(|fared| fared.expect("a buyer does not panic"));
        (fared.collect(), begun)
    }
}

/// Buyers in a seeded order, dealt out to the connections.
fn queues(plan: &Plan) -> Vec<Vec<String>> {
    let mut buyers: Vec<String> = (1..=plan.buyers).map(|n| format!("buyer-{n}")).collect();
    fastrand::Rng::with_seed(plan.seed).shuffle(&mut buyers);
    let connections = plan.connections.clamp(1, plan.buyers.max(1)) as usize;
    let mut queues = vec![Vec::new(); connections];
    for (turn, buyer) in buyers.into_iter().enumerate() {
        queues[turn % connections].push(buyer);
    }
    queues
}

async fn buy_one(client: &mut Client, plan: &Plan, buyer: String) -> Fared {
    let begun = Instant::now();
    let key = format!("{}-{buyer}", plan.seed);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let answer = ask(client, plan, &buyer, &key).await;
        let pause = pause_before_next(&answer);
        match pause {
            Some(pause) if attempts < plan.attempts => tokio::time::sleep(pause).await,
            _ => return Fared { buyer, outcome: outcome(answer), took: begun.elapsed(), attempts },
        }
    }
}

async fn ask(
    client: &mut Client,
    plan: &Plan,
    buyer: &str,
    key: &str,
) -> Result<Response, NoAnswer> {
    let path = format!("/v1/items/{}/orders", plan.item);
    let headers =
        [("x-buyer-id", buyer), ("idempotency-key", key), ("content-type", "application/json")];
    let body = format!(r#"{{"quantity":{}}}"#, plan.quantity);
    client.send(Method::POST, &path, &headers, body.into_bytes()).await
}

/// How long to wait before the same key is worth another attempt; `None` when the answer is final.
fn pause_before_next(answer: &Result<Response, NoAnswer>) -> Option<Duration> {
    match answer {
        Err(_) => Some(Duration::from_millis(200)),
        Ok(response) if response.status == StatusCode::SERVICE_UNAVAILABLE => {
            let seconds = response.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
            Some(Duration::from_secs(seconds))
        }
        Ok(_) => None,
    }
}

fn outcome(answer: Result<Response, NoAnswer>) -> Outcome {
    let response = match answer {
        Ok(response) => response,
        Err(error) => return Outcome::Error(error.to_string()),
    };
    let body: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&response.body).unwrap_or_default();
    let code = body.get("code").and_then(|code| code.as_str()).unwrap_or("no code");
    let location = response.headers.get("location").and_then(|path| path.to_str().ok());
    match (response.status, location) {
        (StatusCode::ACCEPTED | StatusCode::OK, Some(order)) => {
            Outcome::Accepted { order: order.to_owned() }
        }
        (StatusCode::CONFLICT, _) if code == "sold_out" => Outcome::SoldOut,
        (status, _) => Outcome::Error(format!("{} {code}", status.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(buyers: u32, connections: u32, seed: u64) -> Plan {
        let address = "127.0.0.1:1".parse().expect("an address");
        let item = "shoe".to_owned();
        Plan { address, item, buyers, quantity: 1, connections, seed, attempts: 1 }
    }

    #[test]
    fn every_buyer_gets_a_connection_and_the_same_seed_the_same_order() {
        let dealt = queues(&plan(10, 3, 7));
        assert_eq!(dealt.iter().map(Vec::len).collect::<Vec<_>>(), [4, 3, 3]);
        let mut buyers: Vec<_> = dealt.concat();
        buyers.sort();
        buyers.dedup();
        assert_eq!(buyers.len(), 10);
        assert_eq!(dealt, queues(&plan(10, 3, 7)));
        assert_ne!(dealt, queues(&plan(10, 3, 8)));
    }
}
