//! A real cluster of three primaries, each with a replica, behind the same verbs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use shared::config::{self, RedisMode};
use shared::devstack::RedisCluster;
use shared::domain::{ItemId, Namespace, Record};
use shared::stock::{
    CorrectReply, Correction, ForgetLockReply, ForgetReply, Freeze, FreezeReply, LockRequest,
    OrderRecord, ReserveReply, Reserved, RestoreReply, RetireReply, StockError, TermsReply,
    WarmReply,
};
use tokio::task::{block_in_place, spawn_blocking};
use uuid::Uuid;

use super::{
    ConfirmReply, HOUR, Shop, again, is_held, now, plan, plan_within, purchase, rejected,
    request_id, unseen, window,
};
use crate::eventually::eventually;

const SOON: Duration = Duration::from_secs(5);
/// A replica takes over after the time for which its primary has to be silent, and an election; on
/// a busy machine both take longer.
const REPLACED: Duration = Duration::from_secs(30);
/// What a call may take whose node is well, whatever the others do: less than the deadline of one that
/// waits for a silent node.
const UNDISTURBED: Duration = Duration::from_millis(900);

/// How soon a call finds a primary that the cluster has agreed upon: long before the nodes are asked
/// without a reason.
const FOUND: Duration = Duration::from_secs(2);

/// A cluster of the test's own.
struct Own {
    cluster: RedisCluster,
    dir: PathBuf,
}

impl Own {
    async fn start() -> Self {
        let dir = std::env::temp_dir().join(format!("lastunit-it-{}", Uuid::new_v4().simple()));
        fs::create_dir(&dir).expect("a directory");
        let home = dir.clone();
        let started = spawn_blocking(move || RedisCluster::start(&home)).await.expect("no panic");
        Self { cluster: started.expect("a cluster"), dir }
    }

    fn redis(&self, replicas: u8) -> config::Redis {
        config::Redis {
            url: self.cluster.urls().parse().expect("URLs"),
            mode: RedisMode::Cluster,
            first_look_ms: 30_000,
            checks_incarnation: true,
            replicas,
        }
    }

    fn shop(&self, item: &str) -> Shop {
        self.shop_of(&self.redis(0), item)
    }

    fn shop_of(&self, redis: &config::Redis, item: &str) -> Shop {
        let mut shop = Shop::at(redis, &namespace());
        shop.bucket.item = item.parse().expect("an item");
        shop
    }

    /// Shops with one bucket each, on every primary at least one; by the number of their member.
    fn shops(&self) -> BTreeMap<usize, Shop> {
        let shops = (0..30).map(|number| self.shop(&format!("shoe-{number}")));
        let shops: BTreeMap<_, _> = shops.map(|shop| (self.keeper_of(&shop), shop)).collect();
        assert_eq!(shops.len(), 3, "thirty items are on three primaries");
        shops
    }

    fn keeper_of(&self, shop: &Shop) -> usize {
        block_in_place(|| self.cluster.owner_of(&sale_key(shop))).expect("an owner")
    }

    fn every_member(&self, command: &str) {
        for number in 0..6 {
            assert_eq!(self.cluster.ask(number, command).expect("a reply"), "OK", "{command}");
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for number in 0..6 {
            let _ = self.cluster.kill(number);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn namespace() -> Namespace {
    "private".parse().expect("a namespace")
}

fn sale_key(shop: &Shop) -> String {
    format!("private:{{{}#0}}:sale", shop.bucket.item)
}

async fn hold(shop: &Shop, name: &str) -> shared::domain::Reservation {
    shop.hold(&purchase(name, "1", 1)).await
}

async fn answers(shop: &Shop) {
    eventually("the cluster is seen", SOON, async || shop.stock.probe().await.ok()).await;
}

/// Calls every verb of the room once, on one item. In a build for tests, each call checks that all
/// its keys are in one slot; here Redis checks it too.
async fn every_verb(shop: &Shop) {
    let Shop { stock, bucket, .. } = shop;
    let item: &ItemId = &bucket.item;
    shop.open(&plan(1, 9, Some(4))).await;
    let (ann, bob) = (purchase("ann", "1", 1), purchase("bob", "1", 2));
    let (anns, bobs) = (shop.hold(&ann).await, shop.hold(&bob).await);
    assert!(matches!(shop.reserve_one(&again(&ann)).await, ReserveReply::Repeat { .. }));
    assert!(stock.next_look(item, &ann.buyer, ann.request_id).await.expect("an answer").is_some());
    let claimed = stock.claim_overdue(bucket).await.expect("an answer");
    assert_eq!((claimed.standing.expect("it is there").held, claimed.overdue.len()), (2, 0));
    let page = stock.read_holds(bucket, 0).await.expect("an answer").expect("it is there");
    assert_eq!((page.holds.len(), page.available), (2, 6));
    assert_eq!(shop.confirm(&anns).await, ConfirmReply::Done);
    assert_eq!(shop.restore(&bobs, rejected()).await, RestoreReply::Done);
    assert_eq!(shop.confirm(&unseen(&purchase("cid", "1", 1))).await, ConfirmReply::Unseen);
    let asked = [ann.request_id, request_id(&ann.buyer, "2")];
    let asked = asked.map(|request_id| (ann.buyer.clone(), request_id));
    let found = stock.find_holds(item, &asked).await.expect("an answer");
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    let records: Vec<Option<Record>> = stock.read_records(item, &asked).await.expect("an answer");
    assert!(records[0].is_some() && records[1].is_none());
    assert!(shop.find(ann.request_id).await.live);
    let (mut confirmed, mut cursor) = (0, Some(0));
    while let Some(at) = cursor {
        let page = stock.scan_confirmed(bucket, at).await.expect("an answer");
        (confirmed, cursor) = (confirmed + page.reservations.len(), page.next);
    }
    assert_eq!(confirmed, 2, "ann's and cid's, and nobody's of another item");
    assert_eq!(stock.scan_totals(bucket, 0).await.expect("an answer").totals.len(), 1);
    let totals = stock.read_totals(bucket, &[ann.buyer.clone(), bob.buyer.clone()]).await;
    assert_eq!(totals.expect("an answer"), [1, 0]);

    let request =
        LockRequest { purpose: "every verb", lease: Duration::from_secs(30), wait: SOON, floor: 0 };
    let lock = stock.lock(item, &request).await.expect("the lock");
    stock.show_lock(item).await.expect("an answer");
    let freeze = Freeze { fence: lock.fence(), token: Uuid::new_v4() };
    let frozen = stock.freeze(bucket, freeze, lock.lease()).await.expect("an answer");
    assert_eq!(frozen, FreezeReply::Frozen);
    let snapshot = shop.snapshot().await;
    let correction = Correction {
        epoch: 1,
        units: 1,
        compared_until: snapshot.at,
        confirmed_units: 0,
        buyers: vec![(bob.buyer.clone(), 1)],
    };
    let corrected = stock.correct(bucket, freeze, &correction).await.expect("an answer");
    assert_eq!(corrected, CorrectReply::Corrected { added: 1 });
    assert_eq!(stock.thaw(bucket, freeze).await.expect("an answer"), FreezeReply::Thawed);
    let stamped = stock.stamp(bucket, lock.fence(), 1, &snapshot.incarnation).await;
    stamped.expect("an answer");

    let over = window(shared::domain::UnixMillis(1), shared::domain::UnixMillis(now().0 - 1));
    let ended = shared::stock::Terms { version: 2, window: over, ..plan(1, 9, None).terms };
    let told = stock.tell_terms(bucket, &ended).await.expect("an answer");
    assert_eq!(told, TermsReply::Told);
    assert_eq!(stock.retire(bucket).await.expect("an answer"), RetireReply::Early);
    // Built anew, as after a loss.
    let fresh = Freeze { token: Uuid::new_v4(), ..freeze };
    let frozen = stock.freeze(bucket, fresh, HOUR).await.expect("an answer");
    assert_eq!(frozen, FreezeReply::Frozen);
    let anew =
        plan_within(window(shared::domain::UnixMillis(1), now().plus(HOUR)), plan(2, 5, None));
    let forgotten = stock.forget_holds(bucket, 2, lock.fence()).await.expect("an answer");
    assert_eq!(forgotten, ForgetReply::Forgotten { left: 0 });
    assert_eq!(stock.warm(bucket, &anew, lock.fence()).await.expect("an answer"), WarmReply::Done);
    let order = OrderRecord {
        request_id: ann.request_id,
        reservation_id: ann.reservation_id,
        buyer: ann.buyer.clone(),
        quantity: ann.quantity,
        verdict: shared::domain::Verdict::Confirmed(ann.reservation_id),
        buyer_total: 1,
    };
    let paged = stock.warm_page(bucket, 2, &[order], true).await.expect("an answer");
    assert_eq!(paged, WarmReply::Done);
    assert_eq!(stock.open(bucket, 2).await.expect("an answer"), WarmReply::Done);
    assert_eq!(stock.forget_lock(item).await.expect("an answer"), ForgetLockReply::Busy);
    lock.release().await;
    assert_eq!(stock.forget_lock(item).await.expect("an answer"), ForgetLockReply::Forgotten);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_works_on_every_primary_and_locks_wait_for_replicas() {
    let own = Own::start().await;
    // Every script is sent again where it is not known.
    for round in 0..2 {
        for (number, mut shop) in own.shops() {
            let item = format!("{}-{round}", shop.bucket.item);
            shop = own.shop_of(&own.redis(1), &item);
            every_verb(&shop).await;
            own.every_member("SCRIPT FLUSH");
            drop((number, shop));
        }
    }
    let shop = own.shop_of(&own.redis(2), "shoe");
    let request =
        LockRequest { purpose: "too many replicas", lease: HOUR, wait: Duration::ZERO, floor: 0 };
    let refused = shop.stock.lock(&shop.bucket.item, &request).await.expect_err("one follows");
    assert!(refused.to_string().contains("1 of 2 replicas"), "{refused}");
    let store = shared::domain::StoreId::mint();
    shop.stock.bind_store(store, None).await.expect("bound");
    assert_eq!(shop.stock.store().await.expect("an answer"), Some(store));
    let servers = shop.stock.servers().await.expect("an answer");
    assert_eq!(servers.len(), 3);
    assert!(servers.iter().all(|server| server.is_cluster == Some(true)), "{servers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_that_is_named_is_enough_and_one_that_is_away_is_none_too_many() {
    let own = Own::start().await;
    let last = own.cluster.member(5).url();
    let mut redis = own.redis(0);
    for url in [last.clone(), format!("redis://:nobody@127.0.0.1:1/0,{last}")] {
        // Credentials are those of the first, whoever is there.
        let url =
            url.replace(":nobody", &format!(":{}", last.split([':', '@']).nth(2).expect("one")));
        redis.url = url.parse().expect("URLs");
        let shop = own.shop_of(&redis, "shoe");
        answers(&shop).await;
        assert!(shop.stock.snapshot(&shop.bucket).await.expect("an answer").is_none());
    }
    redis.url = "redis://:x@127.0.0.1:1/0".parse().expect("a URL");
    let shop = own.shop_of(&redis, "shoe");
    let since = Instant::now();
    let error = shop.stock.probe().await.expect_err("nobody is there");
    assert!(matches!(error, StockError::Unreachable { .. }), "{error}");
    assert!(since.elapsed() < UNDISTURBED, "{:?}", since.elapsed());
}

/// Reserves one unit under a key of its own.
async fn try_one(shop: &Shop, key: &str) -> Result<Reserved, StockError> {
    let request = purchase("ann", key, 1);
    shop.stock.reserve(&shop.bucket, shop.layout, &[request]).await
}

fn is_sold(reserved: &Reserved) -> bool {
    matches!(reserved, Reserved::Answered(replies) if replies.iter().all(is_held))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_holds_up_nobody_else_and_its_replica_asks_to_be_compared() {
    let mut own = Own::start().await;
    let shops = own.shops();
    for shop in shops.values() {
        shop.open(&plan(1, 10_000, None)).await;
        hold(shop, "bob").await;
    }
    let (&lost, victim) = shops.first_key_value().expect("a shop");
    block_in_place(|| own.cluster.until_replicated(lost)).expect("its replica has it");
    own.cluster.kill(lost).expect("killed");

    let since = Instant::now();
    let mut refused = 0;
    for attempt in 0.. {
        for shop in shops.values().filter(|shop| shop.bucket != victim.bucket) {
            let asked = Instant::now();
            let sold = try_one(shop, &attempt.to_string()).await.expect("it is well");
            assert!(is_sold(&sold), "{sold:?}");
            assert!(asked.elapsed() < UNDISTURBED, "{:?}", asked.elapsed());
        }
        match try_one(victim, &attempt.to_string()).await {
            Ok(Reserved::NotReady) => break,
            Ok(other) => panic!("nobody has compared it: {other:?}"),
            Err(_) => refused += 1,
        }
        assert!(since.elapsed() < REPLACED, "it is not replaced");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(refused > 0, "nobody replaces it at once");
    victim.stamp().await;
    assert!(is_sold(&try_one(victim, "after").await.expect("an answer")));
    answers(victim).await;

    block_in_place(|| own.cluster.restart(lost)).expect("restarted");
    block_in_place(|| own.cluster.until_whole()).expect("whole");
    assert!(is_sold(&try_one(victim, "whole").await.expect("an answer")));

    // Once more, and nobody asks until the cluster has settled it: the first who does is told soon.
    let second = own.keeper_of(victim);
    block_in_place(|| own.cluster.until_replicated(second)).expect("its replica has it");
    own.cluster.kill(second).expect("killed");
    let third = block_in_place(|| own.cluster.until_replaced(second, &sale_key(victim)));
    assert_eq!(third.expect("replaced"), lost);
    let told = eventually("it is found", FOUND, async || try_one(victim, "third").await.ok()).await;
    assert_eq!(told, Reserved::NotReady);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_primary_is_left_for_its_replica_and_holds_up_nobody_else() {
    let own = Own::start().await;
    let shops = own.shops();
    for shop in shops.values() {
        shop.open(&plan(1, 10_000, None)).await;
    }
    let (&lost, victim) = shops.first_key_value().expect("a shop");
    block_in_place(|| own.cluster.until_replicated(lost)).expect("its replica has it");
    own.cluster.pause(lost);
    // The outcome of what was sent is unknown; what comes later is not even sent.
    let error = try_one(victim, "silent").await.expect_err("it says nothing");
    assert!(error.is_unknown(), "{error}");
    let taken_over = eventually("its replica answers", REPLACED, async || {
        for shop in shops.values().filter(|shop| shop.bucket != victim.bucket) {
            let asked = Instant::now();
            shop.stock.snapshot(&shop.bucket).await.expect("it is well");
            assert!(asked.elapsed() < UNDISTURBED, "{:?}", asked.elapsed());
        }
        try_one(victim, "later").await.ok()
    })
    .await;
    assert_eq!(taken_over, Reserved::NotReady);
    own.cluster.resume(lost);
    block_in_place(|| own.cluster.until_whole()).expect("whole");
    victim.stamp().await;
    assert!(is_sold(&try_one(victim, "after").await.expect("an answer")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_third_is_lost_a_cluster_that_serves_all_or_nothing_takes_nothing() {
    let mut own = Own::start().await;
    own.every_member("CONFIG SET cluster-require-full-coverage yes");
    let shops = own.shops();
    let (&lost, _) = shops.first_key_value().expect("a shop");
    let (_, other) = shops.last_key_value().expect("a shop");
    other.open(&plan(1, 10, None)).await;
    let replica = own.cluster.replica_of(lost).expect("an answer").expect("a replica");
    own.cluster.kill(replica).expect("killed");
    own.cluster.kill(lost).expect("killed");
    let refused = eventually("the cluster is down", REPLACED, async || {
        let since = Instant::now();
        let outcome = other.stock.snapshot(&other.bucket).await;
        assert!(since.elapsed() < UNDISTURBED, "{:?}", since.elapsed());
        outcome.err()
    })
    .await;
    assert!(matches!(refused, StockError::Refused { .. }), "{refused}");
    assert!(!refused.is_unknown() && refused.to_string().contains("down"), "{refused}");
    other.stock.probe().await.expect_err("not every slot is served");

    block_in_place(|| own.cluster.restart(lost)).expect("restarted");
    block_in_place(|| own.cluster.restart(replica)).expect("restarted");
    eventually("the cluster is back", REPLACED, async || other.stock.probe().await.ok()).await;
    assert_eq!(other.numbers().await, (10, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_takes_nothing_under_way_and_is_followed() {
    let own = Own::start().await;
    let shops = own.shops();
    let (&from, shop) = shops.first_key_value().expect("a shop");
    let (&to, _) = shops.last_key_value().expect("a shop");
    shop.open(&plan(1, 9, None)).await;
    let bob = purchase("bob", "1", 1);

    block_in_place(|| own.cluster.begin_to_move(&sale_key(shop), to)).expect("begun");
    // There is no hold yet, so the old owner sends whoever asks for one to the new.
    let look = shop
        .stock
        .next_look(&shop.bucket.item, &bob.buyer, bob.request_id)
        .await
        .expect("an answer");
    assert_eq!(look, None);
    let asked = own.cluster.ask(to, "INFO commandstats").expect("a reply");
    assert!(asked.contains("cmdstat_asking"), "{asked}");
    // Of these keys some are here, so that neither of the two can tell: nothing is taken.
    let error = try_one(shop, "under-way").await.expect_err("its keys are under way");
    assert!(matches!(error, StockError::Refused { .. }), "{error}");
    assert_eq!(own.keeper_of(shop), from);

    block_in_place(|| own.cluster.finish_to_move(&sale_key(shop), to)).expect("finished");
    let moved = try_one(shop, "moved").await.expect("an answer");
    assert_eq!(moved, Reserved::NotReady, "another server has to be compared first");
    shop.stamp().await;
    assert!(is_sold(&try_one(shop, "compared").await.expect("an answer")));
    assert_eq!(shop.numbers().await, (8, 0, 1));
}
