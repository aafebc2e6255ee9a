//! What is held, given back and sold while an item is compared is no difference.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reconciler::Mode;
use shared::domain::{BucketCount, ItemId, Reservation};
use shared::stock::{Layout, Refusal, ReserveReply, ReserveRequest, Reserved};
use trials::buyer::at_once;
use trials::line::{Line, Service, limited};
use trials::messages::{Post, hold, reservation};
use trials::until::{PATIENCE, Waiting, until};

use super::{corrections, give_back, only_bucket, resumed, sell, stopped_at};

const HELD: usize = 50;

/// An item of which so many are held.
async fn with_holds(total: u64) -> (Line, ItemId, Vec<Reservation>) {
    let sale = limited("shoe", total, 9);
    let line = Line::new().await;
    line.sell(&sale).await;
    let mut held = Vec::new();
    for number in 0..HELD {
        held.push(hold(&line, &sale.item, &format!("buyer-{number}"), "key-1").await);
    }
    (line, sale.item, held)
}

/// Publishes holds, lets a consumer decide them, and checks that every one is sold.
async fn all_are_sold(line: &mut Line, item: &ItemId, held: &[Reservation], sold_before: u64) {
    let post = Post::of(line).await;
    for message in held.chunks(10) {
        post.place(message).await;
    }
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.until_settled(item).await;
    let books = line.assert_law(item).await;
    assert_eq!(books.confirmed_units, held.len() as u64 + sold_before, "every hold is sold");
}

/// Takes a unit and gives it back, again and again; a freeze in between is waited for.
async fn churn(line: &Line, item: &ItemId, buyer: &str, enough: &AtomicBool) -> usize {
    let mut turns = 0;
    while !enough.load(Ordering::Relaxed) {
        let made = reservation(item, buyer, &format!("key-{turns}"), 1);
        let request = ReserveRequest {
            request_id: made.request_id,
            reservation_id: made.reservation_id,
            buyer: made.buyer.clone(),
            quantity: made.quantity,
        };
        let layout = Layout { epoch: 1, buckets: BucketCount::ONE };
        let reply = line.stock.reserve(&only_bucket(item), layout, &[request]).await;
        match reply {
            Ok(Reserved::Answered(replies)) => match &replies[..] {
                [ReserveReply::Held(held)] => {
                    give_back(line, held).await;
                    turns += 1;
                }
                [ReserveReply::Refused(Refusal::Frozen)] => tokio::task::yield_now().await,
                other => panic!("a unit, or a freeze: {other:?}"),
            },
            other => panic!("the item is live: {other:?}"),
        }
    }
    turns
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_was_changed_from_outside_is_corrected_while_stock_goes_to_and_fro() {
    let (line, item, held) = with_holds(200).await;
    let mut line = line;
    let clerk = line.clerk().await;
    let enough = Arc::new(AtomicBool::new(false));
    let churning: Vec<_> = (0..4)
        .map(|number| {
            let (enough, item, config) = (Arc::clone(&enough), item.clone(), line.config.clone());
            tokio::spawn(async move {
                let own = Line::of(config);
                let waiting = Waiting::for_at_most(PATIENCE);
                while own.stock.probe().await.is_err() {
                    waiting.a_moment("it is connected").await;
                }
                churn(&own, &item, &format!("churner-{number}"), &enough).await
            })
        })
        .collect();

    // Compared over and over, far more often than once a second.
    let compare = async |times: usize| {
        let mut compared = 0;
        until("it is compared so often", async || {
            compared += usize::from(clerk.reconcile(&item, Mode::Apply).await.is_ok());
            (compared >= times).then_some(())
        })
        .await;
    };
    compare(20).await;
    assert_eq!(corrections(&line, &item).await, [], "what moves is no difference");

    line.drift(&item, -7);
    compare(10).await;
    assert_eq!(corrections(&line, &item).await, [(None, 7)]);
    line.drift(&item, 7);
    compare(10).await;
    assert_eq!(corrections(&line, &item).await, [(None, -7), (None, 7)]);
    line.drift_total(&item, "buyer-1", 7);
    compare(10).await;
    let buyer = (Some("buyer-1".to_owned()), -7);
    assert_eq!(corrections(&line, &item).await, [buyer, (None, -7), (None, 7)]);
    assert_eq!(line.total_in_redis(&item, "buyer-1"), 1);

    enough.store(true, Ordering::Relaxed);
    for churned in at_once(churning).await {
        assert!(churned.expect("no panic") > 0, "stock went to and fro");
    }
    assert_eq!(line.snapshot(&item).await.available, 200 - HELD as u64);
    all_are_sold(&mut line, &item, &held, 0).await;
    assert_eq!(corrections(&line, &item).await.len(), 3, "and nothing since");
    line.stop_all().await;
}

/// The process stands still after it has read Redis and before it reads the ledger, then after it
/// has compared and before it corrects: what is settled in between has to move both sides alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_settled_between_the_snapshot_and_the_correction_is_not_corrected() {
    // The first reading is the one without a freeze.
    for point in ["compare.read:2", "reconciler.compared", "reconciler.correcting"] {
        for units in [-7, 7] {
            let (line, item, held) = with_holds(100).await;
            let mut line = line;
            line.drift(&item, units);
            let (process, _scratch) = stopped_at(&line, &item, point).await;
            for held in &held[..10] {
                give_back(&line, held).await;
            }
            for held in &held[10..20] {
                sell(&line, held).await;
            }
            // Decided, and Redis has not heard of it yet.
            line.ledger.commit(&held[20..30]).await.expect("decided");
            assert_eq!(
                resumed(&process).await,
                format!("corrected {} of {}", -units, -units),
                "{point}"
            );
            assert_eq!(corrections(&line, &item).await, [(None, -units)], "{point}");
            line.reconcile(&item).await;
            assert_eq!(corrections(&line, &item).await.len(), 1, "{point}: nothing is left");
            // The ten that were decided are only confirmed by this.
            all_are_sold(&mut line, &item, &held[20..], 10).await;
            assert_eq!(corrections(&line, &item).await.len(), 1, "{point}");
            line.stop_all().await;
        }
    }
}
