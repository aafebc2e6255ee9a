//! `reserve`: takes stock once per request, or says why not.

use shared::domain::{BucketCount, HoldStanding, ReservationId};
use shared::stock::{Layout, ReserveReply, ReserveRequest, Reserved};

use super::{
    KEY_REUSED, LIMIT_REACHED, NOT_WARM, SOLD_OUT, Shop, again, is_held, plan, purchase, rejected,
    unseen,
};

#[tokio::test]
async fn a_purchase_is_held_and_carries_what_was_asked_for() {
    let shop = Shop::selling(3, None).await;
    let request = purchase("ann", "1", 2);
    let reservation = shop.hold(&request).await;
    assert_eq!(reservation.request_id, request.request_id);
    assert_eq!(reservation.reservation_id, request.reservation_id);
    assert_eq!(reservation.buyer, request.buyer);
    assert_eq!(reservation.quantity, request.quantity);
    assert_eq!(reservation.item, shop.bucket.item);
    assert_eq!(reservation.epoch, 1);
    assert_eq!(shop.numbers().await, (1, 0, 1));
    let found = shop.find(request.request_id).await;
    assert!(found.live);
    let hold = found.hold.expect("a hold");
    assert_eq!((hold.reservation_id, hold.buyer), (request.reservation_id, request.buyer));
    assert_eq!((hold.quantity, hold.standing), (request.quantity, HoldStanding::Held));
}

#[tokio::test]
async fn the_last_unit_is_sold_once_and_a_smaller_purchase_behind_a_refused_one_is_served() {
    let shop = Shop::selling(3, None).await;
    let requests = [
        purchase("a", "1", 2),
        purchase("b", "1", 2),
        purchase("c", "1", 1),
        purchase("d", "1", 1),
    ];
    let replies = shop.reserve(&requests).await;
    assert!(is_held(&replies[0]) && is_held(&replies[2]), "{replies:?}");
    assert_eq!([&replies[1], &replies[3]], [&SOLD_OUT, &SOLD_OUT]);
    assert_eq!(shop.numbers().await, (0, 0, 2));
}

#[tokio::test]
async fn a_caller_who_lost_the_reply_asks_again_and_takes_nothing_more() {
    let shop = Shop::selling(9, Some(2)).await;
    let request = purchase("ann", "1", 2);
    let first = shop.hold(&request).await;
    assert_eq!(shop.hold(&request).await, first, "even to the time of the reservation");
    assert_eq!(shop.numbers().await, (7, 0, 1));
}

#[tokio::test]
async fn a_repeat_gets_the_stored_reservation_in_every_state() {
    let shop = Shop::selling(9, None).await;
    let request = purchase("ann", "1", 2);
    let reservation = shop.hold(&request).await;
    let repeat = |standing| ReserveReply::Repeat { reservation: reservation.clone(), standing };
    assert_eq!(shop.reserve_one(&again(&request)).await, repeat(HoldStanding::Held));

    shop.confirm(&reservation).await;
    assert_eq!(shop.reserve_one(&again(&request)).await, repeat(HoldStanding::Confirmed));
    let same_reservation = shop.reserve_one(&request).await;
    assert_eq!(same_reservation, repeat(HoldStanding::Confirmed), "held is over");
    assert_eq!(shop.numbers().await, (7, 2, 0));

    let request = purchase("bob", "1", 2);
    let reservation = shop.hold(&request).await;
    shop.restore(&reservation, rejected()).await;
    let standing = HoldStanding::Restored(rejected());
    let expected = ReserveReply::Repeat { reservation, standing };
    assert_eq!(shop.reserve_one(&again(&request)).await, expected);
    assert_eq!(shop.reserve_one(&request).await, expected);
    assert_eq!(shop.numbers().await, (7, 2, 0));
}

#[tokio::test]
async fn another_quantity_under_the_same_key_is_refused_in_every_state() {
    let shop = Shop::selling(9, None).await;
    let other = |request: &ReserveRequest| ReserveRequest {
        quantity: purchase("ann", "1", 3).quantity,
        ..again(request)
    };
    let (ann, bob) = (purchase("ann", "1", 2), purchase("bob", "1", 2));
    let (held, lost) = (shop.hold(&ann).await, shop.hold(&bob).await);
    assert_eq!(shop.reserve_one(&other(&ann)).await, KEY_REUSED);
    shop.confirm(&held).await;
    assert_eq!(shop.reserve_one(&other(&ann)).await, KEY_REUSED);
    shop.restore(&lost, rejected()).await;
    assert_eq!(shop.reserve_one(&other(&bob)).await, KEY_REUSED);
    let changed_mind = ReserveRequest { quantity: other(&ann).quantity, ..ann };
    assert_eq!(shop.reserve_one(&changed_mind).await, KEY_REUSED, "whatever the reservation id");
    assert_eq!(shop.numbers().await, (7, 2, 0));
}

#[tokio::test]
async fn one_batch_may_hold_the_same_request_many_times() {
    let shop = Shop::selling(9, Some(2)).await;
    let request = purchase("ann", "1", 2);
    let reused = ReserveRequest { quantity: purchase("ann", "1", 1).quantity, ..request.clone() };
    let batch = [request.clone(), request.clone(), again(&request), reused];
    let replies = shop.reserve(&batch).await;
    let ReserveReply::Held(reservation) = &replies[0] else { panic!("{replies:?}") };
    assert_eq!(replies[1], replies[0]);
    let standing = HoldStanding::Held;
    let repeat = ReserveReply::Repeat { reservation: reservation.clone(), standing };
    assert_eq!(replies[2], repeat);
    assert_eq!(replies[3], KEY_REUSED);
    assert_eq!(shop.numbers().await, (7, 0, 1), "taken once");
}

#[tokio::test]
async fn the_limit_counts_every_purchase_of_a_buyer_also_within_a_batch() {
    let shop = Shop::selling(9, Some(3)).await;
    let batch = [
        purchase("ann", "1", 2),
        purchase("ann", "2", 2),
        purchase("ann", "3", 1),
        purchase("ann", "4", 1),
        purchase("bob", "1", 3),
    ];
    let replies = shop.reserve(&batch).await;
    let held: Vec<bool> = replies.iter().map(is_held).collect();
    assert_eq!(held, [true, false, true, false, true], "{replies:?}");
    assert_eq!([&replies[1], &replies[3]], [&LIMIT_REACHED, &LIMIT_REACHED]);
    assert_eq!(shop.reserve_one(&purchase("ann", "5", 1)).await, LIMIT_REACHED);
    assert_eq!(shop.numbers().await, (3, 0, 3));
}

#[tokio::test]
async fn confirmed_units_still_count_against_the_limit() {
    let shop = Shop::selling(9, Some(2)).await;
    let reservation = shop.hold(&purchase("ann", "1", 2)).await;
    shop.confirm(&reservation).await;
    assert_eq!(shop.reserve_one(&purchase("ann", "2", 1)).await, LIMIT_REACHED);
}

#[tokio::test]
async fn a_refusal_leaves_no_trace_and_the_same_key_may_try_again() {
    let shop = Shop::selling(1, Some(1)).await;
    let ann = shop.hold(&purchase("ann", "1", 1)).await;
    let (bob, second) = (purchase("bob", "1", 1), purchase("ann", "2", 1));
    assert_eq!(shop.reserve(&[bob.clone(), second.clone()]).await, [SOLD_OUT, LIMIT_REACHED]);
    assert_eq!(shop.standing(bob.request_id).await, None);
    assert_eq!(shop.standing(second.request_id).await, None);
    assert_eq!(shop.numbers().await, (0, 0, 1));
    shop.restore(&ann, rejected()).await;
    shop.hold(&bob).await;
}

#[tokio::test]
async fn the_largest_batch_is_served_in_order() {
    const MOST: usize = 500;
    let shop = Shop::selling(300, Some(1)).await;
    let batch: Vec<_> = (0..MOST).map(|n| purchase(&format!("buyer-{n}"), "1", 1)).collect();
    let replies = shop.reserve(&batch).await;
    assert!(replies[..300].iter().all(is_held));
    assert!(replies[300..].iter().all(|reply| *reply == SOLD_OUT));
    assert_eq!(shop.numbers().await, (0, 0, 300));

    let reservations: Vec<_> = batch.iter().map(unseen).collect();
    let replies = shop.stock.confirm(&shop.bucket.item, &reservations).await.expect("an answer");
    assert_eq!(replies.len(), MOST);
    assert_eq!(shop.numbers().await, (0, 500, 0), "the ledger has sold what it says");
}

#[tokio::test]
async fn an_old_layout_is_told_the_new_one_before_anything_is_looked_at() {
    let shop = Shop::closed().await;
    shop.open(&plan(4, 9, None)).await;
    let request = purchase("ann", "1", 1);
    for old in [(3, 1), (5, 1), (4, 2)] {
        let buckets = BucketCount::new(old.1).expect("a count");
        let layout = Layout { epoch: old.0, buckets };
        let reply = shop.stock.reserve(&shop.bucket, layout, std::slice::from_ref(&request)).await;
        let expected = Reserved::Moved(Layout { epoch: 4, buckets: BucketCount::ONE });
        assert_eq!(reply.expect("an answer"), expected, "{old:?}");
    }
    assert_eq!(shop.standing(request.request_id).await, None);
    assert_eq!(shop.numbers().await, (9, 0, 0));
}

#[tokio::test]
async fn an_item_that_is_not_here_is_not_warm_and_never_sold_out() {
    let shop = Shop::closed().await;
    assert_eq!(shop.reserve_one(&purchase("ann", "1", 1)).await, NOT_WARM);
    assert_eq!(shop.stock.snapshot(&shop.bucket).await.expect("an answer"), None);
    let found = shop.find(purchase("ann", "1", 1).request_id).await;
    assert_eq!((found.live, found.hold), (false, None), "nobody can say that it does not exist");
}

#[tokio::test]
async fn the_probe_shows_that_scripts_run() {
    Shop::closed().await.stock.probe().await.expect("ready");
}

#[tokio::test]
async fn large_numbers_stay_exact() {
    let shop = Shop::selling(1_000_000_000, None).await;
    let request = purchase("ann", "1", 1_000_000);
    let reservation = shop.hold(&request).await;
    assert_eq!(shop.numbers().await, (999_000_000, 0, 1));
    let other = ReservationId::mint();
    assert_ne!(reservation.reservation_id, other);
    shop.restore(&reservation, rejected()).await;
    assert_eq!(shop.numbers().await, (1_000_000_000, 0, 0));
}
