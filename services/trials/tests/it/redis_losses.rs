//! Redis forgets in mid-sale: all of it, or what came last. Nobody helps; the line comes back by
//! itself, and nothing that was said is taken back.

use std::net::SocketAddr;
use std::time::Duration;

use shared::config::BackendUrl;
use shared::devstack::Redis;
use shared::domain::{Books, Sale};
use tokio::task::block_in_place;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::messages::reservation;
use trials::proxy::Proxy;
use trials::stack::{Own, command, own_redis, share_password, stop_writing, write_only_this};
use trials::throng::{Ends, Throng};
use trials::until::{PATIENCE, until, within};

const UNITS: u64 = 800;
const SOON: Duration = Duration::from_millis(500);

/// How soon after a loss the item must be on sale again, without a person.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// A sale on a Redis of the test's own, behind an address that may lead elsewhere.
struct Scene {
    line: Line,
    redis: Own<Redis>,
    wire: Proxy,
    shoes: Sale,
    address: SocketAddr,
    throng: Throng,
}

impl Scene {
    /// Everybody is at work, and some was sold.
    async fn set() -> Self {
        let redis = own_redis();
        let mut line = Line::new().await;
        let wire = Proxy::to(&url(&redis.backend)).await;
        let behind = url(&redis.backend).with_address(wire.address());
        line.move_to_redis(behind.expose());
        line.hurry(SOON);
        let shoes = sale("shoe", UNITS);
        line.sell(&shoes).await;
        let address = line.ingress().await;
        line.start(Service::Consumer);
        line.start(Service::Consumer);
        line.start(Service::Compensator);
        line.start(Service::Reconciler);
        let throng = Throng::begin(address, "shoe");
        throng.until_more(PATIENCE).await;
        Self { line, redis, wire, shoes, address, throng }
    }

    /// The sale comes back by itself and goes on to the last unit. `others` were bought by somebody
    /// outside the throng.
    async fn until_sold_out(self, others: u64) -> (Ends, Books) {
        self.throng.until_more(BACK_WITHIN).await;
        self.throng.until_told("sold_out").await;
        let problems = self.throng.problems();
        let known = ["not_ready", "not_warm", "frozen", "unknown_outcome", "sold_out", "no answer"];
        assert!(problems.iter().all(|code| known.contains(&code.as_str())), "{problems:?}");
        let ends = self.throng.end().await;
        let books = self.line.until_lawful(&self.shoes.item).await;
        assert_eq!(books.confirmed_units, ends.confirmed + others, "{ends:?} {books:?}");
        self.line.stop_all().await;
        (ends, books)
    }
}

fn url(redis: &Redis) -> BackendUrl {
    redis.url().parse().expect("a URL")
}

fn die_and_come_back(redis: &mut Redis) {
    block_in_place(|| {
        redis.kill().expect("killed");
        redis.restart().expect("Redis");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_comes_back_empty_is_built_again_from_the_ledger() {
    let mut scene = Scene::set().await;
    stop_writing(&scene.redis.backend);
    die_and_come_back(&mut scene.redis.backend);
    scene.throng.until_told("not_warm").await;
    assert_eq!(scene.throng.told("sold_out"), 0);
    scene.until_sold_out(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_dump_sells_nothing_before_it_has_heard_of_what_it_forgot() {
    let mut scene = Scene::set().await;
    // Ann's purchase is on its way when the dump is made, and is decided before the loss.
    scene.line.stop(Service::Consumer).await;
    let mut ann = Buyer::new(scene.address, "ann");
    let accepted = ann.buy_patiently("shoe", "key-1", 1).await;
    write_only_this(&scene.redis.backend);
    scene.line.start(Service::Consumer);
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    scene.throng.until_more(PATIENCE).await;

    die_and_come_back(&mut scene.redis.backend);
    // The dump says that her purchase is held; she must not read that.
    let watching = async {
        loop {
            let shown = ann.get(&accepted.location()).await;
            let is_final = shown.status == 200 && shown.text("status") == "confirmed";
            assert!(is_final || shown.status == 503, "{shown:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = scene.throng.until_more(BACK_WITHIN) => {}
        () = watching => {}
    }
    assert!(scene.throng.told("not_ready") > 0);
    scene.until_sold_out(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lags_sells_nothing_before_it_has_heard_of_what_it_missed() {
    let scene = Scene::set().await;
    let replica = own_redis();
    share_password(&replica.backend, &scene.redis.backend);
    let on_replica = {
        let mut line = Line::of(scene.line.config.clone());
        line.move_to_redis(&replica.backend.url());
        line
    };
    replica.backend.follow(&scene.redis.backend).expect("it obeys");
    until("the replica has the item", async || {
        on_replica.stock.store().await.ok().flatten()?;
        Some(on_replica.snapshot(&scene.shoes.item).await)
    })
    .await;
    // The copying stops: its leader is out of reach, and it keeps what it has.
    command(&replica.backend, "REPLICAOF 127.0.0.1 1");
    let behind = on_replica.snapshot(&scene.shoes.item).await;
    scene.throng.until_more(PATIENCE).await;
    let ahead = scene.line.snapshot(&scene.shoes.item).await;
    assert!(behind.available > ahead.available + 20, "{behind:?} {ahead:?}");

    command(&replica.backend, "REPLICAOF NO ONE");
    scene.wire.lead_to(&url(&replica.backend));
    scene.throng.until_told("not_ready").await;
    scene.until_sold_out(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_replaced_and_comes_back_is_noticed_although_no_connection_broke() {
    let mut scene = Scene::set().await;
    // An ingress of its own wire, to see that its connection survives.
    let own_wire = Proxy::to(&url(&scene.redis.backend)).await;
    let mut config = scene.line.config.clone();
    config.redis.url = config.redis.url.with_address(own_wire.address());
    let address = scene.line.ingress_with(config).await;
    let mut ann = Buyer::new(address, "ann");
    assert_eq!(ann.buy("shoe", "key-1", 1).await.status, 202);
    let connections = own_wire.connections();

    let (first, second) = (&scene.redis.backend, own_redis());
    second.backend.follow(first).expect("it obeys");
    let on_second = {
        let mut line = Line::of(scene.line.config.clone());
        line.move_to_redis(&second.backend.url());
        line
    };
    until("the second has the item", async || {
        on_second.stock.store().await.ok().flatten()?;
        Some(on_second.snapshot(&scene.shoes.item).await)
    })
    .await;
    command(&second.backend, "REPLICAOF NO ONE");
    let behind = on_second.snapshot(&scene.shoes.item).await.available;
    scene.throng.until_more(PATIENCE).await;

    // The first takes over what the second has, and leads again: it has forgotten what came since.
    first.follow(&second.backend).expect("it obeys");
    until("the first has forgotten", async || {
        (scene.line.available(&scene.shoes.item).await >= behind).then_some(())
    })
    .await;
    command(first, "REPLICAOF NO ONE");
    let told = within(Duration::from_secs(5), "told that it is being compared", async || {
        let answer = ann.buy("shoe", "key-2", 1).await;
        answer.assert_problem(503, "not_ready", None);
        answer.text("detail").contains("compared with the ledger").then_some(answer)
    });
    told.await;
    assert_eq!(own_wire.connections(), connections, "the connection never broke");
    scene.until_sold_out(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_restart_of_a_redis_that_writes_first_loses_nothing() {
    let mut scene = Scene::set().await;
    block_in_place(|| scene.redis.backend.write_before_answering().expect("obeyed"));
    // Some are on their way while it restarts.
    scene.line.stop(Service::Consumer).await;
    scene.throng.until_more(PATIENCE).await;
    block_in_place(|| scene.redis.backend.restart().expect("Redis"));
    scene.throng.until_told("not_ready").await;
    scene.line.start(Service::Consumer);
    let (ends, books) = scene.until_sold_out(0).await;
    assert_eq!((ends.rejected, ends.confirmed), (0, UNITS), "{books:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_flushall_what_was_queued_is_confirmed_and_keys_and_limits_are_remembered() {
    const BUYERS: usize = 100;
    let redis = own_redis();
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.hurry(SOON);
    let shoes = limited("shoe", 250, 2);
    line.sell(&shoes).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    // Decided before the loss: ann's is confirmed. Bob's is rejected, he has had his two elsewhere.
    let elsewhere = ["key-8", "key-9"].map(|key| reservation(&shoes.item, "bob", key, 1));
    line.ledger.commit(&elsewhere).await.expect("sold elsewhere");
    let mut decided = Vec::new();
    for (name, end) in [("ann", "confirmed"), ("bob", "rejected")] {
        let mut buyer = Buyer::new(address, name);
        let accepted = buyer.buy("shoe", "key-1", 1).await;
        assert_eq!((accepted.status, buyer.final_state(&accepted).await), (202, end.to_owned()));
        decided.push((buyer, end));
    }
    line.until_settled(&shoes.item).await;
    // Held and queued when Redis forgets.
    line.stop(Service::Consumer).await;
    let queued = at_once((0..BUYERS).map(move |number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let mut accepted = Vec::new();
        for key in ["key-1", "key-2"] {
            accepted.push(buyer.buy_patiently("shoe", key, 1).await);
        }
        (buyer, accepted)
    }))
    .await;
    let before = line.snapshot(&shoes.item).await;
    let fence = line.ledger.fence(&shoes.item).await.expect("the ledger").expect("an item");

    command(&redis.backend, "FLUSHALL");
    let mut carol = Buyer::new(address, "carol");
    carol.buy("shoe", "key-1", 1).await.assert_problem(503, "not_warm", None);
    line.start(Service::Consumer);
    within(BACK_WITHIN, "sold again, by itself", async || {
        let answer = carol.buy("shoe", "key-1", 1).await;
        if answer.status == 202 {
            return Some(answer);
        }
        // Above all not that it is sold out.
        assert!(["not_warm", "not_ready", "frozen"].contains(&answer.text("code")), "{answer:?}");
        None
    })
    .await;
    for (mut buyer, accepted) in queued {
        for one in &accepted {
            assert_eq!((one.status, buyer.final_state(one).await), (202, "confirmed".to_owned()));
        }
        buyer.buy("shoe", "key-3", 1).await.assert_problem(409, "limit_reached", None);
    }
    for (buyer, end) in &mut decided {
        let again = buyer.buy("shoe", "key-1", 1).await;
        assert_eq!((again.status, again.text("status")), (200, *end), "{again:?}");
    }
    let after = line.snapshot(&shoes.item).await;
    assert!(after.epoch > before.epoch && after.fence > fence, "{before:?} {fence} {after:?}");
    let books = line.until_lawful(&shoes.item).await;
    assert_eq!(books.confirmed_units, 2 + 1 + 200 + 1, "{books:?}");
    line.stop_all().await;
}
