//! Whoever knows an old layout is told the new one, takes nothing, and finds the buyer's home.

use shared::domain::{HoldStanding, HoldState, Reservation};
use shared::stock::{
    Bucket, ConfirmReply, InReply, Layout, NotNow, OutReply, ReserveRequest, Reserved,
    RestoreReply, Stock, WarmReply,
};

use super::{count, selling};
use crate::stock::{Shop, giving_back, purchase, rejected};

/// A window on the same Redis that believes this.
fn believing(shop: &Shop, layout: Option<Layout>) -> Stock {
    let stock = Stock::connect(&shop.redis, &shop.namespace).expect("a URL");
    if let Some(layout) = layout {
        stock.learn(&shop.bucket.item, layout);
    }
    stock
}

/// A purchase of a buyer who is at home in this bucket.
fn at_home(shop: &Shop, name: &str) -> ReserveRequest {
    let tries = (0..10_000).map(|number| purchase(&format!("{name}-{number}"), "1", 1));
    let is_home = |request: &ReserveRequest| {
        let home = Bucket::home(&shop.bucket.item, &request.buyer, shop.layout.buckets);
        home == shop.bucket
    };
    tries.into_iter().find(is_home).expect("somebody lives there")
}

/// Settles and finds holds of a bucket for whom every belief about the layout is tried.
async fn finds_home(shop: &Shop, belief: Option<Layout>, name: &str) {
    let item = &shop.bucket.item;
    let held = async |purpose: &str| shop.hold(&at_home(shop, &format!("{name}-{purpose}"))).await;
    let about = |one: &Reservation| [(one.buyer.clone(), one.request_id)];
    let sold = held("sold").await;
    let stock = believing(shop, belief);
    let replies = stock.confirm(item, std::slice::from_ref(&sold)).await.expect("an answer");
    assert_eq!(replies, [ConfirmReply::Done], "{belief:?}");
    assert_eq!(stock.layout(item), shop.layout, "it has learnt: {belief:?}");

    let back = held("back").await;
    let stock = believing(shop, belief);
    let replies = stock.restore(item, &[giving_back(&back, rejected())]).await.expect("an answer");
    assert_eq!(replies, [RestoreReply::Done], "{belief:?}");
    assert_eq!(stock.layout(item), shop.layout, "it has learnt: {belief:?}");

    let held = held("held").await;
    let stock = believing(shop, belief);
    let found = stock.find_hold(item, &held.buyer, held.request_id).await.expect("an answer");
    assert!(found.live, "{belief:?}");
    assert_eq!(found.hold.expect("a hold").standing, HoldStanding::Held, "{belief:?}");
    let stock = believing(shop, belief);
    let found = stock.find_holds(item, &about(&held)).await.expect("an answer");
    let standing = found.into_iter().map(|found| found.expect("a hold").hold.standing);
    assert_eq!(standing.collect::<Vec<_>>(), [HoldStanding::Held], "{belief:?}");
    let stock = believing(shop, belief);
    let records = stock.read_records(item, &about(&sold)).await.expect("an answer");
    let states = records.into_iter().map(|record| record.expect("a record").state);
    assert_eq!(states.collect::<Vec<_>>(), [HoldState::Confirmed], "{belief:?}");
}

#[tokio::test]
async fn settles_and_look_ups_find_the_home_whatever_layout_they_believe_in() {
    let buckets = selling([20, 20, 20]).await;
    let older = |buckets| Some(Layout { epoch: 1, buckets: count(buckets) });
    for (number, belief) in [None, older(1), older(2)].into_iter().enumerate() {
        for shop in &buckets {
            finds_home(shop, belief, &format!("buyer-{number}")).await;
        }
    }
    let unseen: u64 = buckets[0]
        .stock
        .snapshot_item(&buckets[0].bucket.item)
        .await
        .expect("an answer")
        .expect("an item")
        .unseen;
    assert_eq!(unseen, 0, "nobody was settled in a bucket that is not the home");
}

#[tokio::test]
async fn a_batch_from_everywhere_is_answered_in_its_order() {
    let buckets = selling([9, 9, 9]).await;
    let mut held = Vec::new();
    for turn in 0..3 {
        for shop in buckets.iter().rev() {
            held.push(shop.hold(&at_home(shop, &format!("buyer-{turn}"))).await);
        }
    }
    let item = &buckets[0].bucket.item;
    let requests: Vec<_> = held.iter().map(|one| (one.buyer.clone(), one.request_id)).collect();
    let found = believing(&buckets[0], None).find_holds(item, &requests).await;
    let found = found.expect("an answer").into_iter().map(|found| found.expect("a hold").hold);
    let ids: Vec<_> = held.iter().map(|one| one.reservation_id).collect();
    assert_eq!(found.map(|hold| hold.reservation_id).collect::<Vec<_>>(), ids);
    let replies = believing(&buckets[0], None).confirm(item, &held).await.expect("an answer");
    assert_eq!(replies, vec![ConfirmReply::Done; held.len()]);
}

/// Three buckets are built anew as this many, with the units of the ledger in the first.
async fn divided_anew(buckets: &[Shop; 3], into: u16, units: u64) -> Layout {
    let now = Layout { epoch: 2, buckets: count(into) };
    let plan = |available| shared::stock::BucketPlan {
        buckets: now.buckets,
        ..super::plan(now.epoch, available, None)
    };
    for shop in buckets.iter().rev() {
        let fence = 2;
        shop.freeze(fence, crate::stock::HOUR).await;
        let units = if shop.bucket.number == 0 { units } else { 0 };
        let warmed = shop.stock.warm(&shop.bucket, &plan(units), fence).await;
        assert_eq!(warmed.expect("an answer"), WarmReply::Done);
    }
    for shop in buckets.iter().take(into.into()) {
        let built = shop.stock.warm_page(&shop.bucket, now.epoch, &[], true).await;
        assert_eq!(built.expect("an answer"), WarmReply::Done);
        let opened = shop.stock.open(&shop.bucket, now.epoch).await;
        assert_eq!(opened.expect("an answer"), WarmReply::Done);
    }
    now
}

#[tokio::test]
async fn an_old_layout_never_takes_stock_in_any_bucket() {
    for into in [1, 2] {
        let buckets = selling([5, 5, 5]).await;
        let [_, donor, home] = &buckets;
        let transfer = donor.sends(home, 2).await;
        let now = divided_anew(&buckets, into, 15).await;
        for shop in &buckets {
            // Each still believes in three buckets, and then in those with the new epoch.
            for layout in [shop.layout, Layout { epoch: 2, ..shop.layout }, Layout::UNREAD] {
                let request = at_home(shop, "late");
                let reply = shop.stock.reserve(&shop.bucket, layout, &[request]).await;
                assert_eq!(reply.expect("an answer"), Reserved::Moved(now), "{layout:?}");
                let moved = NotNow::Moved(now);
                let reply = shop.stock.transfer_out(&shop.bucket, layout, 0, 1).await;
                assert_eq!(reply.expect("an answer"), OutReply::NotNow(moved), "{layout:?}");
                let reply = shop.stock.transfer_in(&shop.bucket, layout, &transfer).await;
                assert_eq!(reply.expect("an answer"), InReply::NotNow(moved), "{layout:?}");
            }
        }
        // What was moving went with the old layout.
        donor.takes_back(&transfer).await;
        let seen = donor.stock.snapshot_item(&donor.bucket.item).await;
        let seen = seen.expect("an answer").expect("an item");
        assert_eq!((seen.buckets, seen.available, seen.moving), (now.buckets, 15, 0));
    }
}

#[tokio::test]
async fn a_bucket_that_has_lost_its_place_tells_the_new_layout_to_settles_and_look_ups() {
    let buckets = selling([5, 5, 5]).await;
    let [first, _, last] = &buckets;
    let old = last.layout;
    let now = divided_anew(&buckets, 1, 15).await;
    let mut shop = Shop::at(&first.redis, &first.namespace);
    shop.layout = now;
    // Under the old layout these lived in the last bucket.
    let buyer = |name| at_home(last, name);
    let (item, believes) = (&shop.bucket.item, || believing(&shop, Some(old)));

    let held = shop.hold(&buyer("held")).await;
    let found = believes().find_hold(item, &held.buyer, held.request_id).await;
    let found = found.expect("an answer");
    assert!(found.live);
    assert_eq!(found.hold.expect("a hold").reservation_id, held.reservation_id);
    let replies = believes().confirm(item, std::slice::from_ref(&held)).await;
    assert_eq!(replies.expect("an answer"), [ConfirmReply::Done]);
    let back = shop.hold(&buyer("back")).await;
    let replies = believes().restore(item, &[giving_back(&back, rejected())]).await;
    assert_eq!(replies.expect("an answer"), [RestoreReply::Done]);
    let records = believes().read_records(item, &[(held.buyer.clone(), held.request_id)]).await;
    assert!(records.expect("an answer")[0].is_some());
    assert_eq!(shop.numbers().await, (14, 1, 0));
    let seen = last.snapshot().await;
    assert_eq!((seen.available, seen.held, seen.unseen, seen.confirmed_units), (0, 0, 0, 0));
}
