//! Backends that are away when the services start, and backends that die in mid-sale.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use shared::devstack::Stack;
use tokio::task::block_in_place;
use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, sale};
use trials::messages::request_id;
use trials::stack::own_stack;
use trials::until::{until, within};

/// How soon after its return a backend must be in use again.
const BACK_WITHIN: Duration = Duration::from_secs(10);

/// The same for a Redis that has restarted: first it is compared with the ledger.
const COMPARED_WITHIN: Duration = Duration::from_secs(60);

/// Waits until purchases are told that this backend is away.
async fn until_told(buyer: &mut Buyer, key: &str, backend: &str) {
    within(BACK_WITHIN, &format!("told that {backend} is away"), async || {
        let answer = buyer.buy("shoe", key, 1).await;
        if answer.is_accepted() {
            return None;
        }
        // Never a refusal, never a crash.
        answer.assert_problem(503, answer.text("code"), None);
        answer.text("detail").contains(backend).then_some(())
    })
    .await;
}

/// Waits until an ingress that has never sold says that it waits for this backend and for no other.
async fn until_waiting(buyer: &mut Buyer, backend: &str, others: &[&str]) {
    within(BACK_WITHIN, &format!("waiting for {backend}"), async || {
        let refused = buyer.buy("shoe", "key-1", 1).await;
        refused.assert_problem(503, "not_ready", None);
        let ready = buyer.get("/readyz").await;
        let waiting = ready.body["checks"]["catalog"].as_str().unwrap_or_default();
        let only = waiting.contains(backend) && !others.iter().any(|other| waiting.contains(other));
        only.then_some(())
    })
    .await;
}

/// Waits until purchases are accepted.
async fn until_sold(bound: Duration, buyer: &mut Buyer, key: &str) -> Answer {
    within(bound, "sold again", async || {
        Some(buyer.buy("shoe", key, 1).await).filter(Answer::is_accepted)
    })
    .await
}

/// Waits until a purchase is accepted, and then until it is an order: everybody is at work again.
async fn until_decided(bound: Duration, buyer: &mut Buyer, key: &str) {
    let accepted = until_sold(bound, buyer, key).await;
    assert_eq!(buyer.final_state(&accepted).await, "confirmed", "{key}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_start_without_backends_sell_as_soon_as_these_come_up() {
    let mut stack = own_stack();
    let sale = sale("shoe", 10);
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.sell(&sale).await;
    let Stack { redis, rabbitmq, postgres, .. } = &mut stack.backend;
    block_in_place(|| {
        redis.stop().expect("stopped");
        rabbitmq.stop().expect("stopped");
        postgres.stop().expect("stopped");
    });

    let address = line.start_ingress(line.config.clone());
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let mut ann = Buyer::new(address, "ann");
    until("ingress is alive", async || {
        ann.client.get("/healthz").await.ok().filter(|answer| answer.status == 200)
    })
    .await;
    let ready = ann.get("/readyz").await;
    assert_eq!(ready.status, 503, "{ready:?}");
    for check in ["redis", "rabbitmq", "catalog"] {
        assert_ne!(ready.body["checks"][check], "ok", "{ready:?}");
    }

    until_waiting(&mut ann, "cannot reach the ledger", &[]).await;
    block_in_place(|| postgres.restart().expect("PostgreSQL"));
    until_waiting(&mut ann, "cannot reach Redis", &["ledger"]).await;
    block_in_place(|| redis.restart().expect("Redis"));
    until_told(&mut ann, "key-1", "RabbitMQ").await;
    block_in_place(|| rabbitmq.restart().expect("RabbitMQ"));

    let accepted = until_sold(COMPARED_WITHIN, &mut ann, "key-1").await;
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(9)));
    line.stop_all().await;
}

/// Buyers who go on buying, each a unit at a time under a new key, as good clients do.
struct Crowd {
    stop: Arc<AtomicBool>,
    bought: Arc<AtomicUsize>,
    buying: tokio::task::JoinHandle<Vec<(String, Vec<Answer>)>>,
}

impl Crowd {
    fn begin(address: SocketAddr) -> Self {
        let (stop, bought) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&bought));
        let buying = tokio::spawn(at_once((0..8).map(move |number| {
            let (stopped, count) = (Arc::clone(&stopped), Arc::clone(&count));
            async move {
                let mut buyer = Buyer::new(address, format!("crowd-{number}"));
                let mut answers = Vec::new();
                while !stopped.load(Ordering::Relaxed) {
                    let key = format!("key-{}", answers.len());
                    answers.push(buyer.buy_patiently("shoe", &key, 1).await);
                    count.fetch_add(1, Ordering::Relaxed);
                    // Their pace, so that the books stay small.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                (buyer.name, answers)
            }
        })));
        Self { stop, bought, buying }
    }

    /// Waits until this many more have been bought: the sale goes on.
    async fn until_more(&self) {
        let enough = self.bought.load(Ordering::Relaxed) + 40;
        until("the crowd goes on buying", async || {
            (self.bought.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    /// Everything that was bought has become an order.
    async fn end(self, address: SocketAddr) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let bought = self.buying.await.expect("no buyer panics");
        let states = at_once(bought.into_iter().map(|(name, answers)| async move {
            let mut buyer = Buyer::new(address, name);
            let mut count = 0;
            for answer in answers {
                assert!(answer.is_accepted(), "{answer:?}");
                assert_eq!(buyer.final_state(&answer).await, "confirmed");
                count += 1;
            }
            count
        }))
        .await;
        states.iter().sum()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_backend_may_die_in_mid_sale_and_nothing_accepted_is_lost() {
    let mut stack = own_stack();
    let sale = sale("shoe", 1_000_000);
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let mut ann = Buyer::new(address, "ann");
    let Stack { redis, rabbitmq, postgres, .. } = &mut stack.backend;
    // What a killed Redis forgets is for the reconciler to heal. Here the services themselves must
    // lose nothing.
    block_in_place(|| redis.write_before_answering().expect("obeyed"));

    // Orders that no consumer has seen yet survive a broker that is killed.
    let mut waiting = Vec::new();
    for number in 0..20 {
        waiting.push(ann.buy("shoe", &format!("waiting-{number}"), 1).await);
    }
    block_in_place(|| {
        rabbitmq.persist_queue_names().expect("written");
        rabbitmq.kill().expect("killed");
    });
    until_told(&mut ann, "rabbitmq", "RabbitMQ").await;
    block_in_place(|| rabbitmq.restart().expect("RabbitMQ"));
    line.start(Service::Consumer);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    for accepted in &waiting {
        assert_eq!(ann.final_state(accepted).await, "confirmed");
    }
    until_decided(BACK_WITHIN, &mut ann, "rabbitmq").await;

    let crowd = Crowd::begin(address);
    crowd.until_more().await;
    block_in_place(|| rabbitmq.kill().expect("killed"));
    until_told(&mut ann, "rabbitmq-again", "RabbitMQ").await;
    block_in_place(|| rabbitmq.restart().expect("RabbitMQ"));
    until_decided(BACK_WITHIN, &mut ann, "rabbitmq-again").await;
    crowd.until_more().await;

    block_in_place(|| redis.kill().expect("killed"));
    until_told(&mut ann, "redis", "Redis").await;
    block_in_place(|| redis.restart().expect("Redis"));
    until_decided(COMPARED_WITHIN, &mut ann, "redis").await;
    crowd.until_more().await;

    // Nothing on the purchase path touches the ledger.
    block_in_place(|| postgres.kill().expect("killed"));
    let accepted = ann.buy("shoe", "ledger", 1).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let shown = ann.get(&accepted.location()).await;
    assert_eq!((shown.status, shown.text("status")), (200, "reserved"), "{shown:?}");
    let never = request_id(&sale.item, "ann", "never-sent");
    let unknown = ann.order("shoe", never).await;
    unknown.assert_problem(503, "not_ready", None);
    assert!(unknown.text("detail").contains("ledger"), "{unknown:?}");
    crowd.until_more().await;
    block_in_place(|| postgres.restart().expect("PostgreSQL"));
    within(BACK_WITHIN, "decided again", async || {
        let shown = ann.get(&accepted.location()).await;
        (shown.text("status") == "confirmed").then_some(())
    })
    .await;
    ann.order("shoe", never).await.assert_problem(404, "unknown_order", Some("request_id"));

    // A power cut.
    block_in_place(|| {
        for killed in [redis.kill(), rabbitmq.kill(), postgres.kill()] {
            killed.expect("killed");
        }
    });
    let refused = ann.buy("shoe", "power-cut", 1).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    block_in_place(|| {
        redis.restart().expect("Redis");
        postgres.restart().expect("PostgreSQL");
        rabbitmq.restart().expect("RabbitMQ");
    });
    until_decided(COMPARED_WITHIN, &mut ann, "power-cut").await;
    crowd.until_more().await;

    let by_the_crowd = crowd.end(address).await;
    let books = line.assert_law(&sale.item).await;
    // Twenty that waited, and one for each outage.
    assert_eq!(books.confirmed_units, by_the_crowd as u64 + 20 + 5);
    line.stop_all().await;
}
