//! The rivals sell what is there, so that their speed means something; and the control does not, so
//! that the law means something.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bench::strategies::database::CONNECTIONS;
use bench::strategies::judge::{Judgement, Told, judge};
use bench::strategies::purchase::{Outcome, Purchase, Trouble};
use bench::strategies::rival::{Backends, Design, Rival};
use shared::devstack::World;
use tokio::task::JoinSet;
use uuid::Uuid;

const UNITS: i64 = 500;
const BUYERS: u32 = 1_000;

/// How long a buyer goes on asking under the same request id.
const PATIENCE: Duration = Duration::from_secs(60);

async fn rival(design: Design) -> Rival {
    let config = World::new().await.config;
    let backends = Backends::open(&config, CONNECTIONS).await.expect("backends");
    backends.database.create_tables().await.expect("tables");
    let rival = Rival { design, backends };
    rival.put(&["shoe".to_owned()], UNITS).await.expect("a sale");
    rival
}

fn purchases() -> Vec<Purchase> {
    let purchase = |number| Purchase {
        request_id: Uuid::new_v4(),
        item: "shoe".to_owned(),
        buyer: format!("buyer-{number}"),
        quantity: 1,
    };
    (0..BUYERS).map(purchase).collect()
}

/// Everybody at once. Who is told to come back asks again under the same id.
async fn buy_all(rival: &Rival, purchases: &[Purchase]) -> Vec<Outcome> {
    let mut buying = JoinSet::new();
    for (number, purchase) in purchases.iter().cloned().enumerate() {
        let rival = rival.clone();
        buying.spawn(async move { (number, buy(&rival, &purchase).await) });
    }
    let mut outcomes = buying.join_all().await;
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

async fn buy(rival: &Rival, purchase: &Purchase) -> Outcome {
    let begun = Instant::now();
    loop {
        match rival.purchase(purchase).await {
            Ok(outcome) => return outcome,
            Err(trouble) => {
                let passes = matches!(trouble, Trouble::LockBusy { .. } | Trouble::Outrun { .. })
                    || trouble.code() == "no_connection";
                assert!(passes && begun.elapsed() < PATIENCE, "{trouble}");
            }
        }
    }
}

async fn judgement(rival: &Rival, outcomes: &[Outcome]) -> Judgement {
    let accepted = outcomes.iter().filter(|outcome| **outcome != Outcome::SoldOut).count();
    let told = Told { accepted: accepted as u64, troubled: 0 };
    let books = rival.books().await.expect("books");
    judge(&books.items, books.orders, told)
}

async fn sells_exactly_what_is_there(design: Design) {
    let rival = rival(design).await;
    let purchases = purchases();
    let outcomes = buy_all(&rival, &purchases).await;
    let fine = Judgement { oversold: 0, broken: Vec::new() };
    assert_eq!(judgement(&rival, &outcomes).await, fine);
    let told = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert_eq!((told(Outcome::Confirmed), told(Outcome::SoldOut)), (500, 500));

    let again = buy_all(&rival, &purchases).await;
    for (first, again) in outcomes.iter().zip(&again) {
        let expected = match first {
            Outcome::SoldOut => Outcome::SoldOut,
            Outcome::Confirmed | Outcome::Repeated => Outcome::Repeated,
        };
        assert_eq!(*again, expected, "a repeat changes nothing");
    }
    assert_eq!(judgement(&rival, &again).await, fine);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditional_update_sells_exactly_what_is_there() {
    sells_exactly_what_is_there(Design::Conditional).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_lock_sells_exactly_what_is_there() {
    sells_exactly_what_is_there(Design::RowLock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_column_sells_exactly_what_is_there() {
    sells_exactly_what_is_there(Design::Optimistic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_lock_sells_exactly_what_is_there() {
    sells_exactly_what_is_there(Design::RedisLock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_deduct_sells_exactly_what_is_there() {
    sells_exactly_what_is_there(Design::PreDeduct).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_then_write_oversells_and_is_caught() {
    let rival = rival(Design::Naive).await;
    let outcomes = buy_all(&rival, &purchases()).await;
    let judgement = judgement(&rival, &outcomes).await;
    assert!(judgement.oversold > 0, "{judgement:?}");
    let caught = judgement.broken.iter().any(|broken| broken.contains("oversold"));
    assert!(caught, "{judgement:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_at_a_time_has_the_lock_of_an_item_and_everybody_gets_it() {
    let locks = rival(Design::RedisLock).await.backends.locks;
    let holders = Arc::new(AtomicU32::new(0));
    let mut waiting = JoinSet::new();
    for _ in 0..50 {
        let (locks, holders) = (locks.clone(), Arc::clone(&holders));
        waiting.spawn(async move {
            let lock = locks.lock("shoe").await.expect("the lock within its wait");
            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "others have it");
            tokio::task::yield_now().await;
            holders.fetch_sub(1, Ordering::SeqCst);
            lock.release().await.expect("a release");
        });
    }
    waiting.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_once_under_one_id_are_one_purchase() {
    for design in Design::ALL {
        let rival = rival(design).await;
        let purchase = purchases().swap_remove(0);
        let outcomes = buy_all(&rival, &vec![purchase; 50]).await;
        let told = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        assert_eq!((told(Outcome::Confirmed), told(Outcome::Repeated)), (1, 49), "{design:?}");
        let books = rival.books().await.expect("books");
        assert_eq!(books.orders, 1, "{design:?}");
        let judged = judge(&books.items, 1, Told { accepted: 1, troubled: 0 });
        assert_eq!(judged, Judgement { oversold: 0, broken: Vec::new() }, "{design:?}");
    }
}
