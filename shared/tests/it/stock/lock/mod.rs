//! The lock of an item: who has it, for how long, and who is next.

mod outages;
mod queue;
mod replicas;
mod rounds;

use std::time::{Duration, Instant};

use shared::config::{self, RedisMode};
use shared::devstack::{RedisRecipe, World};
use shared::domain::{ItemId, Namespace};
use shared::stock::{ItemLock, LockError, LockHolder, LockRequest, LockStanding, Stock};

use super::raw;
use crate::eventually::eventually;
use crate::scratch::Private;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);
/// Far longer than anything takes on an idle machine.
const SOON: Duration = Duration::from_secs(20);

/// One item, and an owner who wants its lock.
struct Door {
    redis: config::Redis,
    namespace: Namespace,
    item: ItemId,
    stock: Stock,
}

impl Door {
    async fn new() -> Self {
        let World { config } = World::new().await;
        Self::at(&config.redis, &config.namespace)
    }

    /// On a Redis of the test's own.
    fn on(private: &Private<RedisRecipe>, replicas: u8) -> Self {
        let url = private.backend().url().parse().expect("a URL");
        let redis = config::Redis {
            url,
            mode: RedisMode::Single,
            first_look_ms: 30_000,
            checks_incarnation: true,
            replicas,
        };
        Self::at(&redis, &"private".parse().expect("a namespace"))
    }

    fn at(redis: &config::Redis, namespace: &Namespace) -> Self {
        Self {
            redis: redis.clone(),
            namespace: namespace.clone(),
            item: "shoe".parse().expect("an item"),
            stock: Stock::connect(redis, namespace).expect("a URL"),
        }
    }

    /// The same door, for an owner with a connection of their own.
    fn another(&self) -> Self {
        Self::at(&self.redis, &self.namespace)
    }

    async fn lock(&self, lease: Duration, wait: Duration) -> Result<ItemLock, LockError> {
        self.stock.lock(&self.item, &request("a test", lease, wait)).await
    }

    /// Takes what is sure to be free in a moment.
    async fn locked(&self, lease: Duration) -> ItemLock {
        self.lock(lease, SOON).await.expect("it is free in a moment")
    }

    /// Whether it is taken is asked once.
    async fn is_busy(&self) -> bool {
        match self.lock(LONG, Duration::ZERO).await {
            Ok(lock) => {
                lock.release().await;
                false
            }
            Err(LockError::Busy { .. }) => true,
            Err(other) => panic!("{other}"),
        }
    }

    async fn standing(&self) -> LockStanding {
        self.stock.show_lock(&self.item).await.expect("an answer")
    }

    async fn holder(&self) -> LockHolder {
        match self.standing().await {
            LockStanding::Held(holder) => holder,
            free => panic!("nobody has it: {free:?}"),
        }
    }

    /// What Redis says of one of the lock's keys.
    fn raw(&self, command: &str, key: &str) -> String {
        raw::command(&self.redis, &[command, &format!("{}:{{shoe}}:{key}", self.namespace)])
    }

    async fn becomes_free(&self) {
        let free =
            async || matches!(self.standing().await, LockStanding::Free { .. }).then_some(());
        eventually("the lock is free", SOON, free).await;
    }
}

fn request(purpose: &str, lease: Duration, wait: Duration) -> LockRequest<'_> {
    LockRequest { purpose, lease, wait, floor: 0 }
}

#[tokio::test]
async fn two_owners_exclude_each_other_and_the_second_hears_who_has_it() {
    let door = Door::new().await;
    assert_eq!(door.standing().await, LockStanding::Free { fence: 0 });
    let first = door.stock.lock(&door.item, &request("warm up", LONG, SOON)).await.expect("free");
    let refused = door.another().lock(LONG, Duration::ZERO).await.expect_err("it is taken");
    let LockError::Busy { holder, .. } = &refused else { panic!("{refused}") };
    assert_eq!((holder.purpose.as_str(), holder.fence), ("warm-up", first.fence()));
    assert!(holder.holder.ends_with(&format!("/{}", std::process::id())), "{}", holder.holder);
    assert!(holder.left <= LONG && holder.left > LONG / 2, "{:?}", holder.left);
    assert!(refused.to_string().starts_with("shoe is locked: "), "{refused}");
    first.check().expect("still its");

    first.release().await;
    assert_eq!(door.standing().await, LockStanding::Free { fence: 1 });
    let second = door.locked(LONG).await;
    assert_eq!(second.fence(), 2, "every holder has a higher one");
    second.release().await;
}

#[tokio::test]
async fn other_items_are_not_locked() {
    let door = Door::new().await;
    let hat = "hat".parse().expect("an item");
    let _shoe = door.locked(LONG).await;
    let free = door.stock.lock(&hat, &request("a test", LONG, Duration::ZERO)).await;
    assert_eq!(free.expect("it is free").fence(), 1);
}

#[tokio::test]
async fn a_lease_is_renewed_for_as_long_as_its_work_takes() {
    const LEASE: Duration = Duration::from_millis(1_500);
    let door = Door::new().await;
    let lock = door.locked(LEASE).await;
    let begun = Instant::now();
    while begun.elapsed() < 2 * LEASE {
        lock.check().expect("it is renewed");
        assert!(door.is_busy().await, "after {:?}", begun.elapsed());
    }
    assert!(!lock.lost().is_cancelled());
    lock.release().await;
    assert!(!door.is_busy().await);
}

#[tokio::test]
async fn an_owner_that_goes_away_without_a_word_leaves_a_lock_that_lapses() {
    const LEASE: Duration = Duration::from_secs(1);
    let door = Door::new().await;
    drop(door.locked(LEASE).await);
    assert!(door.is_busy().await, "dropping it frees nothing");
    door.becomes_free().await;
}

#[tokio::test]
async fn whoever_lost_the_lock_neither_frees_nor_prolongs_that_of_the_next() {
    const LEASE: Duration = Duration::from_secs(3);
    let door = Door::new().await;
    let first = door.locked(LEASE).await;
    assert_eq!(door.raw("DEL", "lock"), ":1", "Redis forgets it");
    let second = door.another().locked(LONG).await;
    let before = door.holder().await.left;

    let hears = async || first.lost().is_cancelled().then_some(());
    eventually("the first one's next renewal is refused", SOON, hears).await;
    let lost = first.check().expect_err("it is lost");
    assert!(lost.to_string().starts_with("lost the lock of shoe: "), "{lost}");
    first.release().await;
    let LockHolder { fence, left, .. } = door.holder().await;
    assert_eq!(fence, second.fence());
    assert!(left > LEASE && left < before, "{left:?}, {before:?} before");
    second.check().expect("nobody took it away");
}

#[tokio::test]
async fn fences_rise_although_redis_lost_its_count() {
    let redis = Private::<RedisRecipe>::start().await;
    let door = Door::on(&redis, 0);
    let mut floor = 0;
    for round in 1..=3 {
        for _ in 0..3 {
            let request = LockRequest { floor, ..request("counting", LONG, SOON) };
            let lock = door.stock.lock(&door.item, &request).await.expect("it is free");
            assert!(lock.fence() > floor, "round {round}: {} after {floor}", lock.fence());
            floor = lock.fence();
            lock.release().await;
        }
        assert_eq!(raw::command(&door.redis, &["FLUSHALL"]), "+OK");
        assert_eq!(door.standing().await, LockStanding::Free { fence: 0 });
    }
    assert_eq!(floor, 9, "none is left out, none given twice");
}

#[tokio::test]
async fn a_lock_can_be_taken_while_redis_is_full_so_that_it_can_be_emptied() {
    let redis = Private::<RedisRecipe>::start().await;
    let door = Door::on(&redis, 0);
    assert_eq!(raw::command(&door.redis, &["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    assert!(raw::command(&door.redis, &["SET", "x", "1"]).starts_with("-OOM"));
    let lock = door.locked(LONG).await;
    lock.check().expect("it has it");
    lock.release().await;
    assert!(!door.is_busy().await);
}
