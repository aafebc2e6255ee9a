//! Many rounds of many owners, of whom some die with the lock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use shared::devstack::World;
use shared::domain::ItemId;
use shared::stock::{ItemLock, LockRequest, LockStanding, Stock};

use crate::eventually::eventually;

const LEASE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);
const ITEMS: usize = 50;
const OWNERS: usize = 4;
const ROUNDS: u32 = 50;
/// One in so many dies while it has the lock.
const DEADLY: u32 = 25;

/// What is behind a lock: who is inside, and the highest fence that has been.
type Room = Mutex<(Option<Arc<ItemLock>>, u64)>;

/// Somebody is in the room, until they leave or die.
struct Visit<'a>(&'a Room, u64);

impl<'a> Visit<'a> {
    fn enter(room: &'a Room, lock: &Arc<ItemLock>) -> Self {
        let (mut inside, fence) = (room.lock().expect("no panic"), lock.fence());
        // Whoever slept in there past the lease knows that they must do no more.
        let holds = |other: &Arc<ItemLock>| other.check().is_ok();
        assert!(!inside.0.as_ref().is_some_and(holds), "two holders at once");
        assert!(inside.1 < fence, "fence {fence} after {}", inside.1);
        *inside = (Some(Arc::clone(lock)), fence);
        Self(room, fence)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.lock().expect("no panic");
        // A sleeper may find that somebody else has come in.
        if inside.1 == self.1 {
            inside.0 = None;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_rounds_with_owners_that_die_never_have_two_holders_and_leave_no_lock() {
    assert_eq!(ITEMS * OWNERS * ROUNDS as usize, 10_000);
    let World { config } = World::new().await;
    let items: Vec<ItemId> =
        (0..ITEMS).map(|number| format!("item-{number}").parse().expect("an item")).collect();
    let owners: Vec<_> = items
        .iter()
        .map(|item| {
            let stock = Stock::connect(&config.redis, &config.namespace).expect("a URL");
            (stock, item.clone(), Arc::<Room>::default())
        })
        .flat_map(|door| std::iter::repeat_n(door, OWNERS).zip(0..))
        .map(|((stock, item, room), number)| tokio::spawn(own(stock, item, room, number)))
        .collect();
    for owner in join_all(owners).await {
        owner.expect("no panic");
    }
    let stock = Stock::connect(&config.redis, &config.namespace).expect("a URL");
    for item in &items {
        let free = async || match stock.show_lock(item).await.expect("an answer") {
            LockStanding::Free { fence } => Some(fence),
            LockStanding::Held(holder) => {
                assert!(holder.left <= LEASE, "{holder}");
                None
            }
        };
        let fence = eventually("nobody renews it any more", PATIENCE, free).await;
        assert_eq!(fence, u64::from(ROUNDS) * OWNERS as u64, "every round had its turn once");
    }
}

/// Locks and unlocks, and dies now and then; somebody else goes on from there.
async fn own(stock: Stock, item: ItemId, room: Arc<Room>, number: u32) {
    for round in 0..ROUNDS {
        let (stock, item, room) = (stock.clone(), item.clone(), Arc::clone(&room));
        let dies = (round + number * 7).is_multiple_of(DEADLY);
        let (entered, is_inside) = tokio::sync::oneshot::channel();
        let visitor = tokio::spawn(async move {
            let request =
                LockRequest { purpose: "a round", lease: LEASE, wait: PATIENCE, floor: 0 };
            let lock = stock.lock(&item, &request).await.expect("its turn comes");
            let lock = Arc::new(lock);
            let visit = Visit::enter(&room, &lock);
            let _ = entered.send(());
            if dies {
                std::future::pending::<()>().await;
            }
            drop(visit);
            if let Some(lock) = Arc::into_inner(lock) {
                lock.release().await;
            }
        });
        is_inside.await.expect("it comes in");
        if dies {
            visitor.abort();
            assert!(visitor.await.expect_err("it dies").is_cancelled());
        } else {
            visitor.await.expect("no panic");
        }
    }
}
