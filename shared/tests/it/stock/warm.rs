//! A bucket is built out of sight, opened once, and never overwritten while it is open.

use std::time::Duration;

use shared::domain::{
    BucketCount, BucketState, HoldStanding, Reason, Reservation, ReservationId, Verdict,
};
use shared::stock::{
    BucketPlan, ConfirmReply, Layout, OrderRecord, ReserveReply, ReserveRequest, Reserved,
    RestoreReply, Snapshot, WarmReply,
};

use super::{LIMIT_REACHED, NOT_WARM, Shop, again, plan, purchase, rejected};

fn record(request: &ReserveRequest, verdict: Verdict, buyer_total: u64) -> OrderRecord {
    OrderRecord {
        request_id: request.request_id,
        reservation_id: request.reservation_id,
        buyer: request.buyer.clone(),
        quantity: request.quantity,
        verdict,
        buyer_total,
    }
}

async fn page(shop: &Shop, epoch: u64, orders: &[OrderRecord]) -> WarmReply {
    shop.stock.warm_page(&shop.bucket, epoch, orders, true).await.expect("an answer")
}

async fn open(shop: &Shop, epoch: u64) -> WarmReply {
    shop.stock.open(&shop.bucket, epoch).await.expect("an answer")
}

#[tokio::test]
async fn nothing_is_sold_while_the_bucket_is_built() {
    let shop = Shop::closed().await;
    assert_eq!(shop.warm(&plan(1, 9, None)).await, WarmReply::Done);
    let request = purchase("ann", "1", 1);
    assert_eq!(shop.reserve_one(&request).await, NOT_WARM);
    assert!(!shop.find(request.request_id).await.live);
    assert_eq!(shop.snapshot().await.state, BucketState::Building);
    assert_eq!(open(&shop, 1).await, WarmReply::Incomplete, "pages are missing");
    assert_eq!(page(&shop, 1, &[]).await, WarmReply::Done);
    assert_eq!(shop.reserve_one(&request).await, NOT_WARM, "complete, not open yet");
    assert_eq!(open(&shop, 1).await, WarmReply::Done);
    assert_eq!(open(&shop, 1).await, WarmReply::Done, "opening twice changes nothing");
    shop.hold(&request).await;
    assert_eq!(open(&shop, 1).await, WarmReply::Done);
    assert_eq!(shop.numbers().await, (8, 0, 1));
}

#[tokio::test]
async fn a_snapshot_shows_what_the_warm_up_wrote() {
    let shop = Shop::closed().await;
    let buckets = BucketCount::new(3).expect("a count");
    let plan = BucketPlan { buckets, confirmed_units: 5, ..plan(7, 9, None) };
    shop.open(&plan).await;
    let seen = shop.snapshot().await;
    let expected = Snapshot {
        epoch: 7,
        buckets,
        state: BucketState::Open,
        stamped: seen.incarnation.clone(),
        version: 1,
        fence: 1,
        available: 9,
        confirmed_units: 5,
        restored_units: 0,
        held: 0,
        unseen: 0,
        moving: 0,
        transfers: 0,
        frozen: Duration::ZERO,
        pause: None,
        ..seen.clone()
    };
    assert_eq!(seen, expected);
    assert!(seen.standing().is_live());
}

#[tokio::test]
async fn an_open_bucket_is_never_overwritten() {
    let shop = Shop::selling(9, None).await;
    let reservation = shop.hold(&purchase("ann", "1", 2)).await;
    for epoch in [1, 2] {
        assert_eq!(shop.warm(&plan(epoch, 100, None)).await, WarmReply::Live { epoch: 1 });
        let orders = [record(&purchase("bob", "1", 1), rejected(), 0)];
        assert_eq!(page(&shop, epoch, &orders).await, WarmReply::Moved { epoch: 1 });
    }
    assert_eq!(open(&shop, 2).await, WarmReply::Moved { epoch: 1 });
    assert_eq!(shop.numbers().await, (7, 0, 1));
    assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Done);
}

#[tokio::test]
async fn a_later_warm_up_takes_over_what_an_earlier_one_is_building() {
    let shop = Shop::closed().await;
    let sold = purchase("ann", "1", 2);
    assert_eq!(shop.warm(&plan(1, 9, Some(2))).await, WarmReply::Done);
    let orders = [record(&sold, Verdict::Confirmed(sold.reservation_id), 2)];
    assert_eq!(page(&shop, 1, &orders).await, WarmReply::Done);
    assert_eq!(shop.warm(&plan(2, 5, Some(2))).await, WarmReply::Done);
    assert_eq!(page(&shop, 1, &orders).await, WarmReply::Moved { epoch: 2 });
    assert_eq!(open(&shop, 1).await, WarmReply::Moved { epoch: 2 });
    assert_eq!(shop.warm(&plan(1, 9, None)).await, WarmReply::Moved { epoch: 2 });
    assert_eq!(page(&shop, 2, &[]).await, WarmReply::Done);
    assert_eq!(open(&shop, 2).await, WarmReply::Done);
    assert_eq!(shop.snapshot().await.available, 5);
    let request = ReserveRequest { ..purchase("ann", "2", 2) };
    let layout = Layout { epoch: 2, buckets: BucketCount::ONE };
    let reply = shop.stock.reserve(&shop.bucket, layout, &[request]).await.expect("an answer");
    let Reserved::Answered(replies) = reply else { panic!("{reply:?}") };
    assert!(matches!(replies[..], [ReserveReply::Held(_)]), "totals were built anew: {replies:?}");
}

#[tokio::test]
async fn nothing_is_opened_or_filled_that_was_never_begun() {
    let shop = Shop::closed().await;
    assert_eq!(open(&shop, 1).await, WarmReply::Moved { epoch: 0 });
    let orders = [record(&purchase("ann", "1", 1), rejected(), 0)];
    assert_eq!(page(&shop, 1, &orders).await, WarmReply::Moved { epoch: 0 });
    assert_eq!(shop.stock.snapshot(&shop.bucket).await.expect("an answer"), None);
}

#[tokio::test]
async fn limits_and_repeats_of_old_keys_survive_a_rebuild() {
    let shop = Shop::closed().await;
    let (bought, lost, late) =
        (purchase("ann", "1", 2), purchase("ann", "2", 1), purchase("bob", "1", 1));
    let expired = Verdict::Expired(Reason::COMPENSATED);
    let orders = [
        record(&bought, Verdict::Confirmed(bought.reservation_id), 2),
        record(&lost, rejected(), 2),
        record(&late, expired.clone(), 0),
    ];
    shop.warm(&BucketPlan { confirmed_units: 2, ..plan(1, 7, Some(3)) }).await;
    assert_eq!(page(&shop, 1, &orders).await, WarmReply::Done);
    assert_eq!(page(&shop, 1, &orders).await, WarmReply::Done, "a page may come twice");
    open(&shop, 1).await;

    for (request, standing) in [
        (&bought, HoldStanding::Confirmed),
        (&lost, HoldStanding::Restored(rejected())),
        (&late, HoldStanding::Restored(expired)),
    ] {
        let reply = shop.reserve_one(&again(request)).await;
        let ReserveReply::Repeat { reservation, standing: stored } = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(reservation.reservation_id, request.reservation_id);
        assert_eq!(stored, standing);
    }
    assert_eq!(shop.reserve_one(&purchase("ann", "3", 2)).await, LIMIT_REACHED);
    shop.hold(&purchase("ann", "3", 1)).await;
    shop.hold(&purchase("bob", "2", 3)).await;
    assert_eq!(shop.numbers().await, (3, 2, 2));
}

/// A bucket that warm-up 2 built anew, and what is left of it in Redis: this hold of warm-up 1.
async fn rebuilt(request: &ReserveRequest) -> (Shop, Reservation) {
    let mut shop = Shop::closed().await;
    // Open buckets are never overwritten; this one lost its sale, as an old dump would leave it.
    shop.open(&plan(1, 9, None)).await;
    let left = shop.hold(request).await;
    shop.forget_sale();
    shop.open(&plan(2, 9, None)).await;
    shop.layout.epoch = 2;
    (shop, left)
}

#[tokio::test]
async fn a_hold_of_an_earlier_warm_up_counts_as_unseen() {
    let request = purchase("ann", "1", 2);
    let (shop, _) = rebuilt(&request).await;
    assert_eq!(shop.find(request.request_id).await.hold, None);
    let reservation = shop.hold(&again(&request)).await;
    assert_eq!(reservation.epoch, 2);
    assert_ne!(reservation.reservation_id, request.reservation_id);
    assert_eq!(shop.numbers().await, (7, 0, 1));
}

#[tokio::test]
async fn restoring_a_hold_of_an_earlier_warm_up_gives_nothing_back() {
    let request = purchase("ann", "1", 2);
    let (shop, left) = rebuilt(&request).await;
    assert_eq!(shop.restore(&left, rejected()).await, RestoreReply::Unseen);
    assert_eq!(shop.numbers().await, (9, 0, 0), "its stock was not taken from this epoch");
    let standing = shop.standing(request.request_id).await;
    assert_eq!(standing, Some(HoldStanding::Restored(rejected())));
}

#[tokio::test]
async fn confirming_a_hold_of_an_earlier_warm_up_moves_no_stock() {
    let request = purchase("ann", "1", 2);
    let (shop, left) = rebuilt(&request).await;
    assert_eq!(shop.confirm(&left).await, ConfirmReply::Unseen);
    assert_eq!(shop.numbers().await, (9, 2, 0));
    let other = ReservationId::mint();
    let late = ReserveRequest { reservation_id: other, ..request.clone() };
    let reply = shop.reserve_one(&late).await;
    assert!(matches!(reply, ReserveReply::Repeat { .. }), "{reply:?}");
}
