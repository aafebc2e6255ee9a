//! Who takes part in a transfer, and who counts it.

use std::time::Duration;

use shared::devstack::{RedisRecipe, World};
use shared::stock::{FreezeReply, InReply, Layout, NotNow, OutReply};

use super::{closed, count, selling};
use crate::scratch::Private;
use crate::stock::{HOUR, Shop};

#[tokio::test]
async fn a_frozen_bucket_takes_no_part_and_gives_back_all_the_same() {
    let [home, donor] = selling([0, 5]).await;
    let transfer = donor.sends(&home, 1).await;
    let lost = donor.sends(&home, 2).await;
    let freeze = home.freeze(2, HOUR).await;
    assert_eq!(home.takes_in(&transfer).await, InReply::NotNow(NotNow::Frozen));
    assert_eq!(home.has().await, (0, 0));
    assert_eq!(home.thaw(freeze).await, FreezeReply::Thawed);
    assert_eq!(home.takes_in(&transfer).await, InReply::Came, "it was not void");

    let freeze = donor.freeze(2, HOUR).await;
    assert_eq!(donor.let_go(&home, 1).await, OutReply::NotNow(NotNow::Frozen));
    assert_eq!(donor.has().await, (2, 3));
    donor.forgets(&transfer).await;
    assert!(!home.has_got(&lost).await);
    donor.takes_back(&lost).await;
    assert_eq!(donor.has().await, (4, 0), "what is moving is finished under a freeze");
    assert_eq!(donor.thaw(freeze).await, FreezeReply::Thawed);
    assert_eq!(donor.sends(&home, 9).await.units, 4);
}

#[tokio::test]
async fn whoever_knows_another_layout_moves_nothing() {
    let [mut home, mut donor] = selling([0, 5]).await;
    let transfer = donor.sends(&home, 3).await;
    let current = donor.layout;
    for old in [
        Layout { epoch: 0, ..current },
        Layout { epoch: 2, ..current },
        Layout { buckets: count(3), ..current },
        Layout::UNREAD,
    ] {
        (home.layout, donor.layout) = (old, old);
        let moved = NotNow::Moved(current);
        assert_eq!(donor.let_go(&home, 1).await, OutReply::NotNow(moved));
        assert_eq!(home.takes_in(&transfer).await, InReply::NotNow(moved));
    }
    assert_eq!((home.has().await, donor.has().await), ((0, 0), (2, 3)));
    home.layout = current;
    assert_eq!(home.takes_in(&transfer).await, InReply::Came);
    home.layout = Layout::UNREAD;
    assert_eq!(home.takes_in(&transfer).await, InReply::Came, "it came before");
}

#[tokio::test]
async fn buckets_that_are_not_on_sale_take_no_part() {
    let [donor, home] = selling([5, 0]).await;
    let transfer = donor.sends(&home, 3).await;
    let World { config } = World::new().await;
    let elsewhere = closed(&Shop::at(&config.redis, &config.namespace), 2);
    let (cold, building) = (&elsewhere[0], &elsewhere[1]);
    building.warm(&building.plan_of(1, 9)).await;
    for bucket in [cold, building] {
        assert_eq!(bucket.let_go(&home, 1).await, OutReply::NotNow(NotNow::Absent));
        assert_eq!(bucket.takes_in(&transfer).await, InReply::NotNow(NotNow::Absent));
    }
    assert_eq!(building.has().await, (9, 0));
}

#[tokio::test]
async fn a_server_that_was_not_compared_moves_nothing_and_gives_back_all_the_same() {
    let mut redis = Private::<RedisRecipe>::start().await;
    let buckets = closed(&Shop::on(&redis), 2);
    let (home, donor) = (&buckets[0], &buckets[1]);
    home.open(&home.plan_of(1, 0)).await;
    donor.open(&donor.plan_of(1, 5)).await;
    let transfer = donor.sends(home, 3).await;
    redis.kill().await;
    redis.restart().await;
    for bucket in [home, donor] {
        let back = || async { bucket.stock.probe().await.ok() };
        crate::eventually::eventually("Redis is used again", Duration::from_secs(5), back).await;
    }
    assert_eq!(donor.let_go(home, 1).await, OutReply::NotNow(NotNow::NotReady));
    assert_eq!(home.takes_in(&transfer).await, InReply::NotNow(NotNow::NotReady));
    home.stamp().await;
    donor.stamp().await;
    assert_eq!(home.takes_in(&transfer).await, InReply::Came, "nothing was decided meanwhile");
    assert_eq!((home.has().await, donor.has().await), ((3, 0), (2, 3)));
}

#[tokio::test]
async fn a_snapshot_counts_what_is_moving_and_notices_whatever_came() {
    let [home, donor, other] = selling([0, 5, 4]).await;
    let first = donor.sends(&home, 3).await;
    let second = donor.sends(&other, 2).await;
    let third = other.sends(&home, 1).await;
    let item = &home.bucket.item;
    let seen = async || home.stock.snapshot_item(item).await.expect("an answer").expect("an item");
    let now = seen().await;
    assert_eq!((now.available, now.moving), (3, 6));
    let moving: Vec<_> = now.standings.iter().map(|standing| standing.is_moving).collect();
    assert_eq!(moving, [false, true, true]);
    assert_eq!(donor.snapshot().await.transfers, 0, "what has left is no news");

    home.takes_in(&first).await;
    home.takes_in(&first).await;
    assert_eq!(home.snapshot().await.transfers, 1);
    donor.forgets(&first).await;
    assert!(!other.has_got(&second).await);
    donor.takes_back(&second).await;
    donor.takes_back(&second).await;
    assert_eq!(donor.snapshot().await.transfers, 1, "what has come back is");
    assert_eq!((seen().await.available, seen().await.moving), (8, 1));
    home.takes_in(&third).await;
    other.forgets(&third).await;
    assert_eq!((seen().await.available, seen().await.moving), (9, 0));
}
