//! `confirm` and `restore`: finish a hold once, whatever comes twice, late, or from nowhere.

use shared::domain::{HoldStanding, HoldState, Reservation, ReservationId, Verdict};
use shared::stock::{ConfirmReply, ReserveReply, RestoreReply};

use super::{LIMIT_REACHED, Shop, again, giving_back, purchase, rejected, unseen};

#[tokio::test]
async fn a_confirmed_hold_is_sold_and_stays_so() {
    let shop = Shop::selling(9, None).await;
    let reservation = shop.hold(&purchase("ann", "1", 2)).await;
    assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Done);
    assert_eq!(shop.numbers().await, (7, 2, 0));
    assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Already);
    let conflict = RestoreReply::Conflict {
        state: HoldState::Confirmed,
        reservation_id: reservation.reservation_id,
    };
    assert_eq!(shop.restore(&reservation, rejected()).await, conflict);
    assert_eq!(shop.numbers().await, (7, 2, 0));
    let standing = shop.standing(reservation.request_id).await;
    assert_eq!(standing, Some(HoldStanding::Confirmed));
}

#[tokio::test]
async fn a_restored_hold_gives_its_stock_back_once_and_keeps_the_first_verdict() {
    let shop = Shop::selling(9, None).await;
    let reservation = shop.hold(&purchase("ann", "1", 2)).await;
    assert_eq!(shop.restore(&reservation, rejected()).await, RestoreReply::Done);
    assert_eq!(shop.numbers().await, (9, 0, 0));
    let other = Verdict::Expired("discarded".parse().expect("a reason"));
    assert_eq!(shop.restore(&reservation, other).await, RestoreReply::Already);
    let conflict = ConfirmReply::Conflict {
        state: HoldState::Restored,
        reservation_id: reservation.reservation_id,
    };
    assert_eq!(shop.confirm(&reservation).await, conflict);
    assert_eq!(shop.numbers().await, (9, 0, 0));
    let standing = shop.standing(reservation.request_id).await;
    assert_eq!(standing, Some(HoldStanding::Restored(rejected())));
}

#[tokio::test]
async fn a_buyer_whose_units_went_back_can_buy_again_with_a_new_key() {
    let shop = Shop::selling(9, Some(2)).await;
    let first = shop.hold(&purchase("ann", "1", 1)).await;
    let second = shop.hold(&purchase("ann", "2", 1)).await;
    assert_eq!(shop.reserve_one(&purchase("ann", "3", 1)).await, LIMIT_REACHED);
    shop.restore(&first, rejected()).await;
    shop.hold(&purchase("ann", "3", 1)).await;
    assert_eq!(shop.reserve_one(&purchase("ann", "4", 1)).await, LIMIT_REACHED);
    shop.restore(&second, rejected()).await;
    shop.restore(&second, rejected()).await;
    shop.hold(&purchase("ann", "4", 1)).await;
    assert_eq!(shop.reserve_one(&purchase("ann", "5", 1)).await, LIMIT_REACHED, "back once only");
}

#[tokio::test]
async fn the_units_that_go_back_are_the_holds_own() {
    let shop = Shop::selling(9, Some(5)).await;
    let reservation = shop.hold(&purchase("ann", "1", 2)).await;
    let claims_more = Reservation { quantity: purchase("ann", "1", 9).quantity, ..reservation };
    assert_eq!(shop.restore(&claims_more, rejected()).await, RestoreReply::Done);
    assert_eq!(shop.numbers().await, (9, 0, 0));
    shop.hold(&purchase("ann", "2", 5)).await;
}

#[tokio::test]
async fn confirming_an_unseen_request_writes_its_record_and_moves_nothing() {
    let shop = Shop::selling(9, None).await;
    let request = purchase("ann", "1", 2);
    let reservation = unseen(&request);
    assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Unseen);
    assert_eq!(shop.numbers().await, (9, 2, 0), "no stock moves, but it counts as sold");
    assert_eq!(shop.snapshot().await.unseen, 1, "a comparison is asked for");
    let repeat = ReserveReply::Repeat {
        reservation: reservation.clone(),
        standing: HoldStanding::Confirmed,
    };
    assert_eq!(shop.reserve_one(&again(&request)).await, repeat);
    assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Already);
    assert_eq!(shop.numbers().await, (9, 2, 0));
}

#[tokio::test]
async fn restoring_an_unseen_request_leaves_a_tombstone_that_a_late_reserve_finds() {
    let shop = Shop::selling(9, None).await;
    let request = purchase("ann", "1", 2);
    let reservation = unseen(&request);
    assert_eq!(shop.restore(&reservation, rejected()).await, RestoreReply::Unseen);
    assert_eq!(shop.numbers().await, (9, 0, 0), "nothing had been taken");
    // Also the very reservation whose restore came first.
    for late in [request.clone(), again(&request)] {
        let ReserveReply::Repeat { reservation: stored, standing } = shop.reserve_one(&late).await
        else {
            panic!("a tombstone does not sell");
        };
        assert_eq!(stored.reservation_id, reservation.reservation_id);
        assert_eq!(standing, HoldStanding::Restored(rejected()));
    }
    assert_eq!(shop.restore(&reservation, rejected()).await, RestoreReply::Already);
    assert_eq!(shop.numbers().await, (9, 0, 0));
}

#[tokio::test]
async fn another_reservation_of_the_request_cannot_settle_a_hold_in_any_state() {
    let shop = Shop::selling(9, None).await;
    let mine = shop.hold(&purchase("ann", "1", 2)).await;
    let other = Reservation { reservation_id: ReservationId::mint(), ..mine.clone() };
    let surplus = Verdict::Confirmed(mine.reservation_id);
    for state in HoldState::ALL {
        if state == HoldState::Confirmed {
            shop.confirm(&mine).await;
        }
        let (mine, other) = if state == HoldState::Restored {
            let mine = shop.hold(&purchase("bob", "1", 2)).await;
            shop.restore(&mine, rejected()).await;
            (mine.clone(), Reservation { reservation_id: ReservationId::mint(), ..mine })
        } else {
            (mine.clone(), other.clone())
        };
        let before = shop.numbers().await;
        let reservation_id = mine.reservation_id;
        let refused = ConfirmReply::Conflict { state, reservation_id };
        assert_eq!(shop.confirm(&other).await, refused);
        let refused = RestoreReply::Conflict { state, reservation_id };
        assert_eq!(shop.restore(&other, surplus.clone()).await, refused);
        assert_eq!(shop.numbers().await, before, "{state}");
    }
}

#[tokio::test]
async fn one_batch_may_name_the_same_hold_many_times() {
    let shop = Shop::selling(9, Some(3)).await;
    let sold = shop.hold(&purchase("ann", "1", 2)).await;
    let twice = [sold.clone(), sold];
    let replies = shop.stock.confirm(&shop.bucket.item, &twice).await.expect("an answer");
    assert_eq!(replies, [ConfirmReply::Done, ConfirmReply::Already]);
    assert_eq!(shop.numbers().await, (7, 2, 0));

    let (back, stays) =
        (shop.hold(&purchase("bob", "1", 2)).await, shop.hold(&purchase("bob", "2", 1)).await);
    let request = giving_back(&back, rejected());
    let twice = [request.clone(), request];
    let replies = shop.stock.restore(&shop.bucket.item, &twice).await.expect("an answer");
    assert_eq!(replies, [RestoreReply::Done, RestoreReply::Already]);
    assert_eq!(shop.numbers().await, (6, 2, 1));
    assert_eq!(shop.confirm(&stays).await, ConfirmReply::Done);
    assert_eq!(shop.reserve_one(&purchase("bob", "3", 3)).await, LIMIT_REACHED);
}

#[tokio::test]
async fn a_surplus_reservation_goes_back_and_says_under_which_the_request_is_confirmed() {
    let shop = Shop::selling(9, None).await;
    let surplus = shop.hold(&purchase("ann", "1", 2)).await;
    let verdict = Verdict::Confirmed(ReservationId::mint());
    assert_eq!(shop.restore(&surplus, verdict.clone()).await, RestoreReply::Done);
    assert_eq!(shop.numbers().await, (9, 0, 0));
    let standing = shop.standing(surplus.request_id).await;
    assert_eq!(standing, Some(HoldStanding::Restored(verdict)));
}
