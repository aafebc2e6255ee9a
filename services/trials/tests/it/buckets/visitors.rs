//! People who come one after the other as long as a sale lasts. Each buys as much as anybody may, at
//! both ingresses, tries to get more, and repeats an old key.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use shared::domain::RequestId;
use tokio::task::JoinHandle;
use trials::buyer::{Buyer, at_once};
use trials::until::until;

/// Most units that a visitor may have.
pub(super) const LIMIT: u64 = 2;

const AT_ONCE: usize = 6;

/// What counts as more than before.
const SOME: usize = 20;

/// Their pace, so that the machine has time for what happens to them.
const PACE: Duration = Duration::from_millis(30);

/// Everybody who comes.
pub(super) struct Visitors {
    doors: [SocketAddr; 2],
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    coming: JoinHandle<Vec<Vec<Visitor>>>,
}

struct Visitor {
    name: String,
    orders: Vec<RequestId>,
}

impl Visitors {
    pub(super) fn begin(doors: [SocketAddr; 2]) -> Self {
        let (stop, served) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let lanes = (0..AT_ONCE).map(|lane| {
            let (stop, served) = (Arc::clone(&stop), Arc::clone(&served));
            async move {
                let mut gone = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    gone.push(Visitor::visits(doors, format!("{lane}-{}", gone.len())).await);
                    served.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PACE).await;
                }
                gone
            }
        });
        let coming = tokio::spawn(at_once(lanes.collect::<Vec<_>>()));
        Self { doors, stop, served, coming }
    }

    /// Waits until some more have been served: the sale goes on.
    pub(super) async fn until_more(&self) {
        let enough = self.served.load(Ordering::Relaxed) + SOME;
        until("more visitors are served", async || {
            (self.served.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    /// Lets nobody else in: whoever was here has what was accepted, at both ingresses, and may not have
    /// more. Says how many there were.
    pub(super) async fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let all = self.coming.await.expect("no visitor panics");
        let doors = self.doors;
        let again = all.into_iter().map(|lane| async move {
            let served = lane.len() as u64;
            for visitor in lane {
                visitor.comes_again(doors).await;
            }
            served
        });
        at_once(again).await.iter().sum()
    }
}

impl Visitor {
    async fn visits(doors: [SocketAddr; 2], name: String) -> Self {
        let mut buyers = doors.map(|door| Buyer::new(door, name.as_str()));
        let mut orders = Vec::new();
        for (buyer, key) in buyers.iter_mut().zip(["key-0", "key-1"]) {
            let answer = buyer.buy_patiently("shoe", key, 1).await;
            assert!(answer.is_accepted(), "{name} {key}: {answer:?}");
            orders.push(answer.request_id());
        }
        let [first, second] = &mut buyers;
        let more = first.buy_patiently("shoe", "key-2", 1).await;
        more.assert_problem(409, "limit_reached", None);
        let again = second.buy_patiently("shoe", "key-0", 1).await;
        assert!(again.is_accepted() && again.is_replayed(), "{name}: {again:?}");
        assert_eq!(again.request_id(), orders[0]);
        Self { name, orders }
    }

    async fn comes_again(self, doors: [SocketAddr; 2]) {
        for door in doors {
            let mut buyer = Buyer::new(door, self.name.as_str());
            for (key, order) in ["key-0", "key-1"].into_iter().zip(&self.orders) {
                let again = buyer.buy_patiently("shoe", key, 1).await;
                assert!(again.is_accepted() && again.is_replayed(), "{}: {again:?}", self.name);
                assert_eq!(again.request_id(), *order);
                assert_eq!(buyer.final_state(&again).await, "confirmed", "{} {key}", self.name);
            }
            let more = buyer.buy_patiently("shoe", "key-3", 1).await;
            more.assert_problem(409, "limit_reached", None);
        }
    }
}
