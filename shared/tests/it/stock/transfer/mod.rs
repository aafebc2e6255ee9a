//! Units move between the buckets of an item: they come once or go back, and a bucket that may not sell
//! takes no part.

mod moved;
mod standing;

use std::time::Duration;

use shared::config::limits::TRANSFER_DEADLINE;
use shared::devstack::World;
use shared::domain::{BucketCount, UnixMillis};
use shared::stock::{BucketPlan, InReply, OutReply, Transfer};

use super::{Shop, plan};

fn count(buckets: u16) -> BucketCount {
    BucketCount::new(buckets).expect("a count")
}

/// The buckets of one item, not warmed up yet.
fn closed(shop: &Shop, buckets: u16) -> Vec<Shop> {
    let bucket = |number| {
        let mut bucket = Shop::at(&shop.redis, &shop.namespace);
        bucket.bucket.number = number;
        bucket.layout.buckets = count(buckets);
        bucket
    };
    (0..buckets).map(bucket).collect()
}

/// The buckets of one item, each with so many units.
async fn selling<const N: usize>(available: [u64; N]) -> [Shop; N] {
    let World { config } = World::new().await;
    let shop = Shop::at(&config.redis, &config.namespace);
    let buckets = closed(&shop, u16::try_from(N).expect("few buckets"));
    for (bucket, units) in buckets.iter().zip(available) {
        bucket.open(&bucket.plan_of(1, units)).await;
    }
    buckets.try_into().ok().expect("so many")
}

impl Shop {
    /// A plan of this layout.
    fn plan_of(&self, epoch: u64, available: u64) -> BucketPlan {
        BucketPlan { buckets: self.layout.buckets, ..plan(epoch, available, None) }
    }

    /// Asks for up to so many units, for another bucket.
    async fn let_go(&self, home: &Shop, units: u64) -> OutReply {
        let left = self.stock.transfer_out(&self.bucket, self.layout, home.bucket.number, units);
        left.await.expect("an answer")
    }

    /// Units that surely leave.
    async fn sends(&self, home: &Shop, units: u64) -> Transfer {
        match self.let_go(home, units).await {
            OutReply::Out(transfer) => transfer,
            other => panic!("nothing has left: {other:?}"),
        }
    }

    async fn takes_in(&self, transfer: &Transfer) -> InReply {
        let reply = self.stock.transfer_in(&self.bucket, self.layout, transfer).await;
        reply.expect("an answer")
    }

    /// Have they come? If not, they never will.
    async fn has_got(&self, transfer: &Transfer) -> bool {
        self.stock.transfer_came(&self.bucket, transfer).await.expect("an answer")
    }

    async fn takes_back(&self, transfer: &Transfer) {
        self.stock.transfer_back(&self.bucket, transfer).await.expect("an answer");
    }

    async fn forgets(&self, transfer: &Transfer) {
        self.stock.transfer_done(&self.bucket, transfer).await.expect("an answer");
    }

    /// What has left at least so long ago.
    async fn unfinished(&self, age: Duration) -> Vec<Transfer> {
        self.stock.read_transfers(&self.bucket, age).await.expect("an answer")
    }

    /// Units available here, and units on their way from here.
    async fn has(&self) -> (u64, u64) {
        let seen = self.snapshot().await;
        (seen.available, seen.moving)
    }
}

#[tokio::test]
async fn units_come_once_however_often_they_are_brought() {
    let [home, donor] = selling([0, 5]).await;
    let transfer = donor.sends(&home, 3).await;
    assert_eq!((transfer.home, transfer.units), (0, 3));
    assert_eq!((home.has().await, donor.has().await), ((0, 0), (2, 3)));
    for _ in 0..3 {
        assert_eq!(home.takes_in(&transfer).await, InReply::Came);
        assert_eq!((home.has().await, donor.has().await), ((3, 0), (2, 3)));
    }
    for _ in 0..2 {
        donor.forgets(&transfer).await;
        assert_eq!(donor.has().await, (2, 0));
    }
    assert_eq!(home.takes_in(&transfer).await, InReply::Came, "a reply that is asked for late");
    assert_eq!(home.has().await, (3, 0));
}

#[tokio::test]
async fn what_nobody_brought_goes_back_once_and_can_never_come_any_more() {
    let [home, donor] = selling([0, 5]).await;
    let transfer = donor.sends(&home, 3).await;
    for _ in 0..2 {
        assert!(!home.has_got(&transfer).await);
        assert_eq!(home.takes_in(&transfer).await, InReply::Void, "whoever was late");
        donor.takes_back(&transfer).await;
        assert_eq!((home.has().await, donor.has().await), ((0, 0), (5, 0)));
    }
    donor.forgets(&transfer).await;
    assert_eq!((home.has().await, donor.has().await), ((0, 0), (5, 0)));
}

#[tokio::test]
async fn what_has_come_does_not_go_back() {
    let [home, donor] = selling([0, 5]).await;
    let transfer = donor.sends(&home, 3).await;
    assert_eq!(home.takes_in(&transfer).await, InReply::Came);
    assert!(home.has_got(&transfer).await);
    donor.forgets(&transfer).await;
    donor.takes_back(&transfer).await;
    assert!(home.has_got(&transfer).await, "it stays so");
    assert_eq!((home.has().await, donor.has().await), ((3, 0), (2, 0)));
}

#[tokio::test]
async fn no_more_leaves_than_is_there() {
    let [home, donor, other] = selling([1, 5, 2]).await;
    assert_eq!(donor.let_go(&home, 0).await, OutReply::Nothing);
    let first = donor.sends(&home, 4).await;
    let rest = donor.sends(&other, 9).await;
    assert_eq!((first.units, rest.units), (4, 1), "the rest");
    assert_eq!(donor.let_go(&home, 1).await, OutReply::Nothing);
    assert_eq!(donor.has().await, (0, 5));
}

#[tokio::test]
async fn units_that_are_too_long_on_their_way_do_not_come() {
    let [home, donor] = selling([0, 5]).await;
    let ago = |transfer: Transfer, age: Duration| {
        let started_at = transfer.started_at.0 - u64::try_from(age.as_millis()).expect("short");
        Transfer { started_at: UnixMillis(started_at), ..transfer }
    };
    let second = Duration::from_secs(1);
    let quick = ago(donor.sends(&home, 1).await, TRANSFER_DEADLINE.saturating_sub(5 * second));
    assert_eq!(home.takes_in(&quick).await, InReply::Came);
    let slow = ago(donor.sends(&home, 1).await, TRANSFER_DEADLINE + second);
    assert_eq!(home.takes_in(&slow).await, InReply::Void);
    assert_eq!(home.has().await, (1, 0));
    // Whoever has been told so has not decided it: the others do.
    assert!(!home.has_got(&slow).await);
    donor.takes_back(&slow).await;
    assert_eq!(donor.has().await, (4, 1), "the quick one is not forgotten yet");
}

#[tokio::test]
async fn unfinished_transfers_are_found_the_oldest_first() {
    let [home, donor, other] = selling([0, 9, 0]).await;
    let first = donor.sends(&home, 2).await;
    let second = donor.sends(&other, 3).await;
    let third = donor.sends(&home, 1).await;
    let found = donor.unfinished(Duration::ZERO).await;
    // Those of one millisecond have no order.
    assert!(found.is_sorted_by_key(|transfer| transfer.started_at), "{found:?}");
    for transfer in [&first, &second, &third] {
        assert!(found.contains(transfer), "{found:?}");
    }
    assert_eq!(found.len(), 3);
    assert_eq!(donor.unfinished(TRANSFER_DEADLINE).await, [], "all are young");
    assert_eq!(home.unfinished(Duration::ZERO).await, [], "they are the donor's");
    donor.forgets(&second).await;
    let found = donor.unfinished(Duration::ZERO).await;
    assert!(found.len() == 2 && !found.contains(&second), "{found:?}");
}
