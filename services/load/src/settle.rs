//! Follows every accepted purchase until it is final, as its buyer would: over HTTP.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hyper::{Method, StatusCode};

use crate::client::Client;

/// An accepted purchase.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub buyer: String,
    /// The path under which the order is found.
    pub order: String,
}

/// What the buyers found in the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finals {
    pub confirmed: u64,
    pub rejected: u64,
    pub expired: u64,
    /// Not final within the patience.
    pub open: u64,
}

/// Connections on which buyers ask how their purchases stand.
const ASKING: usize = 16;

/// How long a buyer waits before it asks again.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks until every purchase is final, or the patience is over. `on_final` is told of each one.
pub async fn follow(
    address: SocketAddr,
    accepted: Vec<Accepted>,
    patience: Duration,
    on_final: impl Fn() + Clone + Send + 'static,
) -> Finals {
    let until = Instant::now() + patience;
    let share = accepted.len().div_ceil(ASKING).max(1);
    let asking = accepted
        .chunks(share)
        .map(|share| tokio::spawn(follow_share(address, share.to_vec(), until, on_final.clone())));
    let mut finals = Finals::default();
    for share in join_all(asking.collect::<Vec<_>>()).await {
        let share = share.expect("a buyer does not panic");
        finals.confirmed += share.confirmed;
        finals.rejected += share.rejected;
        finals.expired += share.expired;
        finals.open += share.open;
    }
    finals
}

async fn follow_share(
    address: SocketAddr,
    mut open: Vec<Accepted>,
    until: Instant,
    on_final: impl Fn(),
) -> Finals {
    let mut client = Client::new(address);
    let mut finals = Finals::default();
    loop {
        let mut still_open = Vec::new();
        for purchase in open {
            let counter = match status(&mut client, &purchase).await.as_deref() {
                Some("confirmed") => &mut finals.confirmed,
                Some("rejected") => &mut finals.rejected,
                Some("expired") => &mut finals.expired,
                _ => {
                    still_open.push(purchase);
                    continue;
                }
            };
            *counter += 1;
            on_final();
        }
        open = still_open;
        if open.is_empty() || Instant::now() >= until {
            finals.open = open.len() as u64;
            return finals;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn status(client: &mut Client, purchase: &Accepted) -> Option<String> {
    let headers = [("x-buyer-id", purchase.buyer.as_str())];
    let answer = client.send(Method::GET, &purchase.order, &headers, Vec::new()).await.ok()?;
    if answer.status != StatusCode::OK {
        return None;
    }
    let body: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    body.get("status")?.as_str().map(str::to_owned)
}
