//! Whoever was stopped in the middle of a correction, longer than the lock lasts, does no harm after.

use reconciler::lock_item;
use shared::config::limits::LOCK_LEASE;
use shared::domain::{ItemId, UnixMillis};
use shared::stock::{
    CorrectReply, Correction, Freeze, FreezeReply, ItemLock, LockStanding, StampReply,
};
use trials::line::{Line, limited};
use trials::messages::hold;
use trials::until::until;
use uuid::Uuid;

use super::{corrections, only_bucket, resumed, stopped_at};

/// Buyers hold three of ten units.
async fn line() -> (Line, ItemId) {
    let sale = limited("shoe", 10, 2);
    let line = Line::new().await;
    line.sell(&sale).await;
    for buyer in ["ann", "bob", "cid"] {
        hold(&line, &sale.item, buyer, "key-1").await;
    }
    (line, sale.item)
}

async fn locked(line: &Line, item: &ItemId) -> ItemLock {
    until("the lock is free", async || {
        lock_item(&line.stock, &line.ledger, item, "a-later-one", LOCK_LEASE).await.ok()
    })
    .await
}

/// Who has the lock, and for how long still.
async fn holder(line: &Line, item: &ItemId) -> (u64, std::time::Duration) {
    let standing = line.stock.show_lock(item).await.expect("Redis");
    let LockStanding::Held(holder) = standing else { panic!("it is held: {standing:?}") };
    (holder.fence, holder.left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_stopped_past_its_lease_corrects_nothing_and_touches_no_other_lock() {
    // It wakes before it asks whether it still has the lock, and after it has asked.
    for (point, says) in [
        ("reconciler.compared", "its lease ran out before it could be renewed"),
        ("reconciler.correcting", "a later holder has written under a higher fence"),
    ] {
        let (line, item) = line().await;
        line.drift(&item, -7 + 4);
        let (process, _scratch) = stopped_at(&line, &item, point).await;
        let (first, _) = holder(&line, &item).await;
        // As soon as the lock of the stopped one has lapsed.
        line.reconcile(&item).await;
        assert_eq!(corrections(&line, &item).await, [(None, 3)], "{point}");
        assert_eq!(line.available(&item).await, 7);
        let later = locked(&line, &item).await;
        let (fence, before) = holder(&line, &item).await;
        assert!(fence == later.fence() && fence > first + 1, "{fence} after {first}");

        let ended = resumed(&process).await;
        assert!(ended.contains(says) && ended.contains("nothing more is written"), "{ended}");
        let (still, after) = holder(&line, &item).await;
        assert_eq!(still, fence, "the lock of another is not freed");
        assert!(after <= before, "nor prolonged: {before:?}, then {after:?}");
        later.check().expect("it goes on");
        assert_eq!(line.available(&item).await, 7, "{point}");
        assert_eq!(corrections(&line, &item).await.len(), 1, "{point}");
        assert!(!line.ledger.claim_fence(&item, first).await.expect("the ledger"));
        later.release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_stopped_while_units_were_sold_corrects_nothing() {
    let (line, item) = line().await;
    line.drift(&item, -3);
    let (process, _scratch) = stopped_at(&line, &item, "reconciler.correcting").await;
    let (first, _) = holder(&line, &item).await;
    until("the freeze has lapsed", async || {
        let frozen = line.snapshot(&item).await.frozen;
        frozen.is_zero().then_some(())
    })
    .await;
    hold(&line, &item, "dan", "key-1").await;
    let ended = resumed(&process).await;
    assert!(ended.contains("nothing was corrected"), "{ended}");
    assert_eq!(line.available(&item).await, 3, "ten, less three, less a drift of three, less one");
    assert_eq!(corrections(&line, &item).await, []);
    // Nobody else had the lock: the drift is still there, and is corrected by whoever comes next.
    line.reconcile(&item).await;
    assert_eq!(corrections(&line, &item).await, [(None, 3)]);
    let next = locked(&line, &item).await;
    assert!(next.fence() > first);
    next.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_late_holder_sends_is_refused_by_redis_and_by_the_ledger() {
    let (line, item) = line().await;
    let bucket = only_bucket(&item);
    let late = locked(&line, &item).await;
    let freeze = Freeze { fence: late.fence(), token: Uuid::new_v4() };
    let frozen = line.stock.freeze(&bucket, freeze, LOCK_LEASE).await.expect("Redis");
    assert_eq!(frozen, FreezeReply::Frozen);
    let snapshot = line.snapshot(&item).await;
    // As if its lease had ended: another has the lock, and the same freeze goes on under it.
    late.release().await;
    let later = locked(&line, &item).await;
    let theirs = Freeze { fence: later.fence(), token: Uuid::new_v4() };
    line.stock.freeze(&bucket, theirs, LOCK_LEASE).await.expect("Redis");

    let correction = Correction {
        confirmed_units: 0,
        epoch: snapshot.epoch,
        units: 7,
        compared_until: UnixMillis(0),
        buyers: vec![("ann".parse().expect("a buyer"), 7)],
    };
    let stale = later.fence();
    let corrected = line.stock.correct(&bucket, freeze, &correction).await.expect("Redis");
    assert_eq!(corrected, CorrectReply::Stale { fence: stale });
    for reply in [
        line.stock.thaw(&bucket, freeze).await.expect("Redis"),
        line.stock.freeze(&bucket, freeze, LOCK_LEASE).await.expect("Redis"),
    ] {
        assert_eq!(reply, FreezeReply::Stale { fence: stale });
    }
    let seen = line.stock.snapshot(&only_bucket(&item)).await.expect("Redis").expect("a bucket");
    let (epoch, incarnation) = (seen.epoch, &seen.incarnation);
    let stamped = line.stock.stamp(&bucket, freeze.fence, epoch, incarnation).await;
    assert_eq!(stamped.expect("Redis"), StampReply::Stale { fence: stale });
    let begun = line.ledger.begin_warm(&item, freeze.fence, epoch, None).await.expect("the ledger");
    assert_eq!(begun, None, "no epoch is raised");
    assert!(!line.ledger.claim_fence(&item, freeze.fence).await.expect("the ledger"));

    let row = line.ledger.find_item(&item).await.expect("the ledger").expect("an item");
    assert_eq!(row.epoch, epoch);
    assert_eq!((line.available(&item).await, line.total_in_redis(&item, "ann")), (7, 1));
    let corrected = line.stock.correct(&bucket, theirs, &correction).await.expect("Redis");
    assert_eq!(corrected, CorrectReply::Corrected { added: 7 }, "the later one is not hindered");
    later.release().await;
}
