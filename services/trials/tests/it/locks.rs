//! The lock of an item between processes, backends and wires that fail.

use std::path::Path;
use std::time::Duration;

use reconciler::{LockItemError, lock_item};
use shared::config::limits::LOCK_LEASE;
use shared::domain::ItemId;
use shared::ledger::Ledger;
use shared::stock::{ItemLock, LockRequest, LockStanding, Stock};
use tokio::task::block_in_place;
use trials::holder::Holder;
use trials::line::{Line, sale};
use trials::proxy::{Loss, Proxy};
use trials::stack::{Scratch, command, own_redis};
use trials::until::{PATIENCE, until};

const TRIAL: &str = env!("CARGO_BIN_EXE_trial");

/// A line with one item, on which nobody works yet.
async fn line() -> (Line, ItemId) {
    let sale = sale("shoe", 5);
    let line = Line::new().await;
    line.put(&sale).await;
    (line, sale.item)
}

/// Locks, as work of several steps does.
async fn locked(line: &Line, item: &ItemId) -> ItemLock {
    lock_item(&line.stock, &line.ledger, item, "a trial", LOCK_LEASE).await.expect("it is free")
}

async fn fence(ledger: &Ledger, item: &ItemId) -> u64 {
    ledger.fence(item).await.expect("an answer").expect("an item")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_frozen_past_its_lease_knows_as_soon_as_it_wakes() {
    const LEASE: Duration = Duration::from_millis(1_500);
    let (line, item) = line().await;
    let scratch = Scratch::create();
    let mut holder = Holder::start(Path::new(TRIAL), scratch.path(), &line.config, "shoe", LEASE);
    until("the process has the lock", async || holder.has_begun().then_some(())).await;
    assert_eq!(block_in_place(|| holder.ask().answer()), "has it under fence 1");

    holder.freeze();
    // Asked while it still has the lock, heard when it has it no more.
    let question = holder.ask();
    let wait = LockRequest { purpose: "next", lease: LOCK_LEASE, wait: PATIENCE, floor: 1 };
    let second = line.stock.lock(&item, &wait).await.expect("the lease ends");
    assert!(line.ledger.claim_fence(&item, second.fence()).await.expect("an answer"));
    holder.thaw();
    let answer = block_in_place(|| question.answer());
    assert_eq!(
        answer,
        "lost the lock of shoe: its lease ran out before it could be renewed; nothing more is written"
    );
    // Had it been about to write: the ledger has seen a higher fence.
    assert!(!line.ledger.claim_fence(&item, 1).await.expect("an answer"));
    second.check().expect("the frozen one did not prolong or free it");
    second.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_frozen_within_its_lease_goes_on() {
    let (line, item) = line().await;
    let scratch = Scratch::create();
    let (program, dir) = (Path::new(TRIAL), scratch.path());
    let mut holder = Holder::start(program, dir, &line.config, "shoe", LOCK_LEASE);
    until("the process has the lock", async || holder.has_begun().then_some(())).await;
    holder.freeze();
    let question = holder.ask();
    holder.thaw();
    assert_eq!(block_in_place(|| question.answer()), "has it under fence 1");
    let refused = lock_item(&line.stock, &line.ledger, &item, "next", LOCK_LEASE).await;
    assert!(matches!(refused, Err(LockItemError::Lock(_))), "it is taken all the while");
    holder.kill();
    let LockStanding::Held(dead) = line.stock.show_lock(&item).await.expect("an answer") else {
        panic!("a killed holder frees nothing");
    };
    assert!(dead.left <= LOCK_LEASE, "{dead}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_whose_reply_is_lost_is_the_same_lock_when_asked_again() {
    for loss in [Loss::Cut, Loss::Silence] {
        let (line, item) = line().await;
        let wire = Proxy::to(&line.config.redis.url).await;
        let mut redis = line.config.redis.clone();
        redis.url = redis.url.with_address(wire.address());
        let stock = Stock::connect(&redis, &line.config.namespace).expect("a URL");
        // From here on Redis knows the scripts: what is lost is a lock, not an error.
        lock_item(&stock, &line.ledger, &item, "first", LOCK_LEASE)
            .await
            .expect("free")
            .release()
            .await;

        wire.lose_answers("second", 1, loss);
        let lock = lock_item(&stock, &line.ledger, &item, "second", LOCK_LEASE).await;
        let lock = lock.expect("asked again");
        assert_eq!(wire.lost(), 1);
        assert_eq!((lock.fence(), fence(&line.ledger, &item).await), (2, 2));
        let held = line.stock.show_lock(&item).await.expect("an answer");
        assert!(matches!(&held, LockStanding::Held(holder) if holder.fence == 2), "{held:?}");
        lock.check().expect("it is its");
        lock.release().await;
        let free = line.stock.show_lock(&item).await.expect("an answer");
        assert_eq!(free, LockStanding::Free { fence: 2 }, "no other lock was taken on the way");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_knows_the_fence_before_any_work_and_after_a_loss_of_redis() {
    let (mut line, item) = line().await;
    let redis = own_redis();
    line.config.redis.url = redis.backend.url().parse().expect("a URL");
    line.stock = Stock::connect(&line.config.redis, &line.config.namespace).expect("a URL");
    for expected in 1..=3 {
        let lock = locked(&line, &item).await;
        assert_eq!((lock.fence(), fence(&line.ledger, &item).await), (expected, expected));
        lock.release().await;
        // Redis loses its data with each round.
        command(&redis.backend, "FLUSHALL");
    }

    let held = locked(&line, &item).await;
    command(&redis.backend, "FLUSHALL");
    let next = locked(&line, &item).await;
    assert!(next.fence() > held.fence());
    let late = line.ledger.claim_fence(&item, held.fence()).await;
    assert!(!late.expect("an answer"), "the ledger refuses the one that Redis forgot");
    next.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_under_a_fence_that_the_ledger_has_passed_is_taken_anew() {
    let (line, item) = line().await;
    let wire = Proxy::to(&line.config.redis.url).await;
    let mut redis = line.config.redis.clone();
    redis.url = redis.url.with_address(wire.address());
    let stock = Stock::connect(&redis, &line.config.namespace).expect("a URL");
    until("the wire is used", async || stock.probe().await.ok()).await;
    wire.fall_silent();
    let (ledger, shoe) = (line.ledger.clone(), item.clone());
    let locking =
        tokio::spawn(async move { lock_item(&stock, &ledger, &shoe, "late", LOCK_LEASE).await });
    until("it has the lock and does not know", async || {
        let standing = line.stock.show_lock(&item).await.ok()?;
        matches!(standing, LockStanding::Held(_)).then_some(())
    })
    .await;
    assert!(line.ledger.claim_fence(&item, 10).await.expect("an answer"));
    wire.recover();
    let lock = locking.await.expect("no panic").expect("started over");
    assert_eq!((lock.fence(), fence(&line.ledger, &item).await), (11, 11));
    lock.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_locked_that_does_not_exist() {
    let (line, _) = line().await;
    let ghost = "ghost".parse().expect("an item");
    let refused = lock_item(&line.stock, &line.ledger, &ghost, "a trial", LOCK_LEASE).await;
    let refused = refused.expect_err("there is no such item");
    assert!(matches!(refused, LockItemError::UnknownItem(_)), "{refused}");
    let standing = line.stock.show_lock(&ghost).await.expect("an answer");
    assert_eq!(standing, LockStanding::Free { fence: 0 });
}
