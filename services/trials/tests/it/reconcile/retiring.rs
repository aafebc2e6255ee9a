//! Items leave Redis by themselves, long after their sale.

use std::time::Duration;

use shared::domain::Sale;
use trials::line::{Line, Service, now, sale, window};
use trials::messages::{hold, reservation};
use trials::until::until;

use super::{give_back, sell};

const HOUR: Duration = Duration::from_secs(3_600);

/// Over for longer than Redis remembers it.
fn long_over(item: &str) -> Sale {
    Sale { window: window(now() - 26 * HOUR, now() - 25 * HOUR), ..sale(item, 5) }
}

/// An item that has one confirmed order; its sale is on.
async fn sold(line: &Line, sale: &Sale) {
    line.sell(sale).await;
    let held = hold(line, &sale.item, "ann", "sold").await;
    sell(line, &held).await;
    line.reconcile(&sale.item).await;
}

/// Moves the sale of an item into the past, as if that much time had gone by.
async fn end_long_ago(line: &Line, item: &str) {
    let over = long_over(item);
    line.put(&over).await;
    assert!(reconciler::tell_terms(&line.ledger, &line.stock, &over.item).await.expect("told"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_is_long_over_leaves_redis_by_itself() {
    let shoes = sale("shoe", 5);
    let mut line = Line::new().await;
    sold(&line, &shoes).await;
    // Whoever corrects has the lock.
    line.drift(&shoes.item, 2);
    line.reconcile(&shoes.item).await;
    end_long_ago(&line, "shoe").await;
    assert!(line.keys_of(&shoes.item).len() > 2);

    line.start(Service::Reconciler);
    until("it has left", async || {
        let keys = line.keys_of(&shoes.item);
        keys.iter().all(|key| !key.name.ends_with(":sale")).then_some(())
    })
    .await;
    line.stop_everything().await;
    let stays: Vec<_> =
        line.keys_of(&shoes.item).into_iter().filter(|key| key.lives_ms < 0).collect();
    assert_eq!(stays, [], "what is left expires");
    let orders = line.ledger.count_orders(&shoes.item).await.expect("the ledger");
    assert_eq!(orders.confirmed, 1, "the ledger keeps what was sold");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_was_put_and_warmed_up_too_late_leaves_as_well() {
    let over = long_over("shoe");
    let mut line = Line::new().await;
    line.sell(&over).await;
    line.start(Service::Reconciler);
    until("it has left", async || {
        let kept = line.ledger.kept_items(HOUR).await.expect("the ledger");
        let stays = line.keys_of(&over.item).into_iter().any(|key| key.lives_ms < 0);
        (kept.is_empty() && !stays).then_some(())
    })
    .await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_with_a_hold_stays_until_that_is_settled() {
    let (shoes, hats) = (sale("shoe", 5), sale("hat", 5));
    let mut line = Line::new().await;
    sold(&line, &shoes).await;
    sold(&line, &hats).await;
    let held = hold(&line, &shoes.item, "bob", "held").await;
    end_long_ago(&line, "shoe").await;
    end_long_ago(&line, "hat").await;
    line.start(Service::Reconciler);
    // The other one shows that the reconciler has been round.
    let bucket = super::only_bucket(&hats.item);
    until("the other one has left", async || {
        line.stock.snapshot(&bucket).await.expect("Redis").is_none().then_some(())
    })
    .await;
    assert_eq!(line.snapshot(&shoes.item).await.held, 1, "nothing that is held is forgotten");
    give_back(&line, &held).await;
    let bucket = super::only_bucket(&shoes.item);
    until("it leaves", async || {
        line.stock.snapshot(&bucket).await.expect("Redis").is_none().then_some(())
    })
    .await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_has_left_comes_back_with_its_orders_when_it_is_put_on_sale_again() {
    let shoes = sale("shoe", 5);
    let mut line = Line::new().await;
    sold(&line, &shoes).await;
    end_long_ago(&line, "shoe").await;
    line.start(Service::Reconciler);
    let bucket = super::only_bucket(&shoes.item);
    until("it has left", async || {
        line.stock.snapshot(&bucket).await.expect("Redis").is_none().then_some(())
    })
    .await;
    line.put(&shoes).await;
    let back = until("it is back", async || line.stock.snapshot(&bucket).await.ok()?).await;
    assert_eq!((back.available, back.confirmed_units), (4, 1));
    let known = reservation(&shoes.item, "ann", "sold", 1);
    let found =
        line.stock.find_hold(&bucket.item, &known.buyer, known.request_id).await.expect("Redis");
    assert!(found.hold.is_some(), "a repeat of the old purchase finds it");
    line.stop_all().await;
}
