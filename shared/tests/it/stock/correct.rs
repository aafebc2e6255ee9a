//! A bucket is corrected by difference, once for each freeze, and only by the latest holder of the
//! lock.

use std::time::Duration;

use shared::domain::{BuyerId, UnixMillis};
use shared::stock::{
    CorrectReply, Correction, Freeze, FreezeReply, Refusal, ReserveReply, RestoreReply,
};
use uuid::Uuid;

use super::{LIMIT_REACHED, Shop, buyer, now, purchase, rejected};
use crate::eventually::eventually;

const FROZEN: ReserveReply = ReserveReply::Refused(Refusal::Frozen);
const LONG: Duration = Duration::from_secs(60);

impl Shop {
    pub(super) async fn freeze(&self, fence: u64, lease: Duration) -> Freeze {
        let freeze = Freeze { fence, token: Uuid::new_v4() };
        assert_eq!(self.freeze_with(freeze, lease).await, FreezeReply::Frozen);
        freeze
    }

    async fn freeze_with(&self, freeze: Freeze, lease: Duration) -> FreezeReply {
        self.stock.freeze(&self.bucket, freeze, lease).await.expect("an answer")
    }

    pub(super) async fn thaw(&self, freeze: Freeze) -> FreezeReply {
        self.stock.thaw(&self.bucket, freeze).await.expect("an answer")
    }

    async fn correct(&self, freeze: Freeze, correction: &Correction) -> CorrectReply {
        self.stock.correct(&self.bucket, freeze, correction).await.expect("an answer")
    }
}

fn units(units: i64) -> Correction {
    Correction {
        epoch: 1,
        units,
        compared_until: UnixMillis(0),
        confirmed_units: 0,
        buyers: Vec::new(),
    }
}

fn total(name: &str, units: i64) -> (BuyerId, i64) {
    (buyer(name), units)
}

#[tokio::test]
async fn a_frozen_bucket_reserves_nothing_and_settles_on() {
    let shop = Shop::selling(9, None).await;
    let (sold, lost) = (purchase("ann", "1", 2), purchase("bob", "1", 1));
    let (sold, lost) = (shop.hold(&sold).await, shop.hold(&lost).await);
    let freeze = shop.freeze(2, LONG).await;
    assert_eq!(shop.reserve_one(&purchase("eve", "1", 1)).await, FROZEN);
    shop.confirm(&sold).await;
    assert_eq!(shop.restore(&lost, rejected()).await, RestoreReply::Done);
    assert_eq!(shop.numbers().await, (7, 2, 0));
    assert!(shop.snapshot().await.frozen > Duration::from_secs(50));

    let other = Freeze { token: Uuid::new_v4(), ..freeze };
    assert_eq!(shop.thaw(other).await, FreezeReply::Lapsed, "somebody else's freeze");
    assert_eq!(shop.reserve_one(&purchase("eve", "1", 1)).await, FROZEN);
    assert_eq!(shop.thaw(freeze).await, FreezeReply::Thawed);
    shop.hold(&purchase("eve", "1", 1)).await;
}

#[tokio::test]
async fn a_freeze_that_has_lapsed_is_neither_renewed_nor_used() {
    let shop = Shop::selling(9, None).await;
    let freeze = shop.freeze(2, Duration::from_millis(150)).await;
    assert_eq!(shop.freeze_with(freeze, Duration::from_millis(200)).await, FreezeReply::Frozen);
    eventually("the freeze lapses", LONG, || async {
        (shop.reserve_one(&purchase("ann", "1", 1)).await != FROZEN).then_some(())
    })
    .await;
    assert_eq!(shop.freeze_with(freeze, LONG).await, FreezeReply::Lapsed);
    assert_eq!(shop.correct(freeze, &units(7)).await, CorrectReply::Lapsed, "a unit was sold");
    assert_eq!(shop.numbers().await, (8, 0, 1));
    let anew = shop.freeze(2, LONG).await;
    assert_eq!(shop.correct(anew, &units(7)).await, CorrectReply::Corrected { added: 7 });
}

#[tokio::test]
async fn one_freeze_corrects_once() {
    let shop = Shop::selling(9, None).await;
    let freeze = shop.freeze(2, LONG).await;
    assert_eq!(shop.correct(freeze, &units(7)).await, CorrectReply::Corrected { added: 7 });
    assert_eq!(shop.correct(freeze, &units(7)).await, CorrectReply::Already { added: 7 });
    assert_eq!(shop.numbers().await.0, 16);
}

#[tokio::test]
async fn the_holder_of_a_lower_fence_does_nothing_any_more() {
    let shop = Shop::selling(9, None).await;
    let late = shop.freeze(2, LONG).await;
    let later = shop.freeze(3, LONG).await;
    assert_eq!(shop.correct(late, &units(7)).await, CorrectReply::Stale { fence: 3 });
    assert_eq!(shop.thaw(late).await, FreezeReply::Stale { fence: 3 });
    assert_eq!(shop.freeze_with(late, LONG).await, FreezeReply::Stale { fence: 3 });
    let other = Freeze { fence: 2, token: Uuid::new_v4() };
    assert_eq!(shop.freeze_with(other, LONG).await, FreezeReply::Stale { fence: 3 });
    assert_eq!(shop.correct(later, &units(-2)).await, CorrectReply::Corrected { added: -2 });
    assert_eq!(shop.numbers().await.0, 7);
}

#[tokio::test]
async fn a_correction_never_goes_below_nothing_and_says_what_it_did() {
    let shop = Shop::selling(5, None).await;
    let freeze = shop.freeze(2, LONG).await;
    assert_eq!(shop.correct(freeze, &units(-7)).await, CorrectReply::Corrected { added: -5 });
    assert_eq!(shop.correct(freeze, &units(-7)).await, CorrectReply::Already { added: -5 });
    assert_eq!(shop.numbers().await.0, 0);
}

#[tokio::test]
async fn a_correction_of_another_epoch_does_nothing() {
    let shop = Shop::selling(5, None).await;
    let freeze = shop.freeze(2, LONG).await;
    let old = Correction { epoch: 0, ..units(7) };
    assert_eq!(shop.correct(freeze, &old).await, CorrectReply::Moved { epoch: 1 });
    assert_eq!(shop.numbers().await.0, 5);
}

#[tokio::test]
async fn totals_of_buyers_are_corrected_by_difference_too() {
    let shop = Shop::selling(9, Some(3)).await;
    shop.hold(&purchase("ann", "1", 2)).await;
    shop.hold(&purchase("bob", "1", 2)).await;
    let freeze = shop.freeze(2, LONG).await;
    let buyers = vec![total("ann", 1), total("bob", -9), total("cid", 3)];
    let correction = Correction { buyers, ..units(0) };
    assert_eq!(shop.correct(freeze, &correction).await, CorrectReply::Corrected { added: 0 });
    assert_eq!(shop.correct(freeze, &correction).await, CorrectReply::Already { added: 0 });
    shop.thaw(freeze).await;
    let names = ["ann", "bob", "cid", "dan"].map(buyer);
    let totals = shop.stock.read_totals(&shop.bucket, &names).await.expect("an answer");
    assert_eq!(totals, [3, 0, 3, 0]);
    let page = shop.stock.scan_totals(&shop.bucket, 0).await.expect("an answer");
    assert_eq!(page.totals.len(), 2, "whoever has nothing is not kept: {page:?}");
    assert_eq!(shop.reserve_one(&purchase("ann", "2", 1)).await, LIMIT_REACHED);
    shop.hold(&purchase("bob", "2", 3)).await;
}

#[tokio::test]
async fn a_correction_forgets_the_unseen_orders_that_were_compared() {
    let shop = Shop::selling(9, None).await;
    for key in ["1", "2"] {
        shop.confirm(&super::unseen(&purchase("ann", key, 1))).await;
    }
    assert_eq!(shop.snapshot().await.unseen, 2);
    let freeze = shop.freeze(2, LONG).await;
    let before = Correction { compared_until: UnixMillis(1), ..units(-1) };
    shop.correct(freeze, &before).await;
    assert_eq!(shop.snapshot().await.unseen, 2, "they came after the comparison");
    let freeze = shop.freeze(2, LONG).await;
    let after = Correction { compared_until: now().plus(LONG), ..units(-1) };
    shop.correct(freeze, &after).await;
    assert_eq!(shop.snapshot().await.unseen, 0);
}

#[tokio::test]
async fn holds_are_read_in_pages_and_none_is_missed() {
    let shop = Shop::selling(2_000, None).await;
    for hundred in 0..10 {
        let batch: Vec<_> =
            (0..100).map(|n| purchase(&format!("buyer-{hundred}-{n}"), "1", 1)).collect();
        shop.reserve(&batch).await;
    }
    let (mut seen, mut cursor) = (std::collections::HashSet::new(), Some(0));
    while let Some(at) = cursor {
        let page = shop.stock.read_holds(&shop.bucket, at).await.expect("an answer");
        let page = page.expect("a bucket");
        assert!(page.holds.len() < 500, "no script touches more: {}", page.holds.len());
        assert_eq!(page.available, 1_000);
        seen.extend(page.holds.into_iter().map(|hold| hold.request_id));
        cursor = page.next;
    }
    assert_eq!(seen.len(), 1_000);
}
