//! An answer that is lost on the way from a backend is not a failure: the buyer hears the truth or
//! "try again", never a wrong refusal, and a repeat ends in exactly one order.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use shared::domain::{ItemId, Sale};
use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, limited};
use trials::messages::{Post, request_id};
use trials::proxy::{Loss, Proxy};

/// What `PUBLISH_DEADLINE` and `REDIS_DEADLINE` leave room for: nobody waits longer for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// In the body of every message to the order queues.
const PLACED: &str = "reservations.placed.v1";

/// Two units unless more are said, one to a buyer, behind an ingress whose wires can be tampered with.
struct Scene {
    line: Line,
    sale: Sale,
    redis: Proxy,
    rabbitmq: Proxy,
    address: SocketAddr,
}

impl Scene {
    async fn set() -> Self {
        Self::with_units(2).await
    }

    async fn with_units(units: u64) -> Self {
        let sale = limited("shoe", units, 1);
        let mut line = Line::new().await;
        line.sell(&sale).await;
        let mut config = line.config.clone();
        let redis = Proxy::to(&config.redis.url).await;
        let rabbitmq = Proxy::to(&config.rabbitmq.url).await;
        config.redis.url = config.redis.url.with_address(redis.address());
        config.rabbitmq.url = config.rabbitmq.url.with_address(rabbitmq.address());
        let address = line.ingress_with(config).await;
        // Redis now knows the script, and ingress knows the item's layout: what follows is one
        // call of reserve and one publish.
        assert_eq!(Buyer::new(address, "early").buy("shoe", "key-1", 1).await.status, 202);
        Self { line, sale, redis, rabbitmq, address }
    }

    fn item(&self) -> &ItemId {
        &self.sale.item
    }

    /// What only ann's call of reserve contains.
    fn anns_request(&self) -> String {
        request_id(self.item(), "ann", "key-1").to_string()
    }

    async fn ann_buys(&self) -> Answer {
        let begun = Instant::now();
        let answer = Buyer::new(self.address, "ann").buy("shoe", "key-1", 1).await;
        assert!(begun.elapsed() < ANSWERED_WITHIN, "{:?}: {answer:?}", begun.elapsed());
        answer
    }

    /// Both units are held, once each.
    async fn assert_taken_once(&self) {
        let redis = self.line.snapshot(self.item()).await;
        assert_eq!((redis.available, redis.held), (self.sale.total - 2, 2));
    }

    /// Whatever ann was told, the same key ends in her one order.
    async fn assert_one_order(mut self) {
        let mut ann = Buyer::new(self.address, "ann");
        let accepted = ann.buy_patiently("shoe", "key-1", 1).await;
        assert!(accepted.is_accepted(), "{accepted:?}");
        self.assert_taken_once().await;
        self.line.start(Service::Consumer);
        self.line.start(Service::Compensator);
        assert_eq!(ann.final_state(&accepted).await, "confirmed");
        ann.buy("shoe", "key-2", 1).await.assert_problem(409, "limit_reached", None);
        let letters = Post::of(&self.line).await.flush().await;
        assert_eq!(letters, Vec::<Vec<u8>>::new());
        let books = self.line.assert_law(self.item()).await;
        assert_eq!(books.confirmed_units, 2);
        self.line.stop_all().await;
    }
}

/// 202, or "the purchase may have been accepted".
fn assert_true_or_unknown(answer: &Answer) {
    if answer.status != 202 {
        answer.assert_problem(503, "unknown_outcome", None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reserve_whose_reply_is_lost_is_asked_again_and_accepted() {
    let scene = Scene::set().await;
    scene.redis.lose_answers(scene.anns_request(), 1, Loss::Cut);
    let answer = scene.ann_buys().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(scene.redis.lost(), 1);
    scene.assert_taken_once().await;
    scene.assert_one_order().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reserve_whose_reply_never_comes_is_asked_again_and_accepted() {
    let scene = Scene::set().await;
    scene.redis.lose_answers(scene.anns_request(), 1, Loss::Silence);
    let answer = scene.ann_buys().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(scene.redis.lost(), 1);
    scene.assert_one_order().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reserve_whose_reply_is_lost_twice_is_of_unknown_outcome_until_its_repeat() {
    for loss in [Loss::Cut, Loss::Silence] {
        let scene = Scene::set().await;
        scene.redis.lose_answers(scene.anns_request(), 2, loss);
        scene.ann_buys().await.assert_problem(503, "unknown_outcome", None);
        assert_eq!(scene.redis.lost(), 2);
        scene.assert_taken_once().await;
        scene.assert_one_order().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_refused_while_every_second_reply_of_redis_is_lost() {
    const BUYERS: u64 = 30;
    let sale = limited("shoe", BUYERS, 1);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let mut config = line.config.clone();
    let redis = Proxy::to(&config.redis.url).await;
    config.redis.url = config.redis.url.with_address(redis.address());
    let address = line.ingress_with(config).await;
    line.start(Service::Consumer);

    // Every call of reserve names the bucket's held set, and each of them is asked by a batch.
    let held = format!("{}:{{shoe#0}}:held", line.config.namespace);
    redis.lose_answers(held, 6, Loss::Cut);
    let answers = at_once((0..BUYERS).map(|number| async move {
        Buyer::new(address, format!("buyer-{number}")).buy_patiently("shoe", "key-1", 1).await
    }))
    .await;

    for answer in &answers {
        assert!(answer.is_accepted(), "{answer:?}");
    }
    assert!(redis.lost() >= 2, "{}", redis.lost());
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (BUYERS, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_whose_confirm_is_lost_is_of_unknown_outcome_until_its_repeat() {
    for loss in [Loss::Cut, Loss::Silence] {
        let scene = Scene::set().await;
        scene.rabbitmq.lose_answers(PLACED, 1, loss);
        let answer = scene.ann_buys().await;
        assert_eq!(scene.rabbitmq.lost(), 1, "{loss:?}");
        assert_true_or_unknown(&answer);
        scene.assert_taken_once().await;
        scene.assert_one_order().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_whose_confirm_is_lost_three_times_in_a_row_ends_in_one_order() {
    let scene = Scene::set().await;
    scene.rabbitmq.lose_answers(PLACED, 3, Loss::Cut);
    let mut ann = Buyer::new(scene.address, "ann");
    let accepted = ann.buy_patiently("shoe", "key-1", 1).await;
    assert!(accepted.is_replayed(), "the first three attempts were not confirmed: {accepted:?}");
    assert_eq!(scene.rabbitmq.lost(), 3);
    scene.assert_one_order().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_falls_silent_costs_nobody_stock_or_more_than_seconds() {
    let scene = Scene::with_units(3).await;
    scene.rabbitmq.fall_silent();
    assert_true_or_unknown(&scene.ann_buys().await);

    // It is known by now that nothing can be published: nothing more is reserved.
    let mut bob = Buyer::new(scene.address, "bob");
    let begun = Instant::now();
    let refused = bob.buy("shoe", "key-1", 1).await;
    refused.assert_problem(503, "broker_unavailable", None);
    assert!(refused.text("detail").contains("RabbitMQ"), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    scene.assert_taken_once().await;

    scene.rabbitmq.recover();
    scene.assert_one_order().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_falls_silent_keeps_nobody_waiting() {
    let scene = Scene::set().await;
    scene.redis.fall_silent();
    scene.ann_buys().await.assert_problem(503, "unknown_outcome", None);
    // Once the connection is given up, purchases fail at once rather than pile up.
    let begun = Instant::now();
    let answers =
        at_once(
            (0..50).map(|number| {
                let address = scene.address;
                async move {
                    Buyer::new(address, format!("buyer-{number}")).buy("shoe", "key-1", 1).await
                }
            }),
        )
        .await;
    assert!(begun.elapsed() < ANSWERED_WITHIN, "{:?}", begun.elapsed());
    for answer in answers {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.text("detail").contains("Redis"), "{answer:?}");
    }
    scene.redis.recover();
    scene.assert_one_order().await;
}
