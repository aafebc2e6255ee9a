//! What Redis keeps of a sale: how a hold is written down, whom it counts, and how much memory that
//! takes.

use shared::config::limits::{RESERVE_BATCH, SETTLE_BATCH};
use shared::devstack::RedisRecipe;
use shared::domain::{Reservation, Verdict};
use shared::stock::{Bucket, BucketPlan, OrderRecord, ReserveReply, ReserveRequest};

use super::{LIMIT_REACHED, Shop, again, is_held, plan, purchase, raw, rejected, unseen};
use crate::scratch::Private;

/// Nearly as many as the hash tables of Redis have room for before they double.
const BUYERS: usize = 32_000;

/// Reservation ids are written in 22 characters.
fn written(shop: &Shop, reservation: &Reservation) -> Vec<String> {
    let key = format!("{}:{{shoe#0}}:hold:{}", shop.namespace, reservation.request_id);
    raw::command(&shop.redis, &["GET", &key]).split('|').map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn a_hold_is_one_short_line_that_says_how_it_stands() {
    let shop = Shop::selling(9, None).await;
    let (sold, lost) =
        (shop.hold(&purchase("ann", "1", 1)).await, shop.hold(&purchase("bob", "1", 2)).await);
    let (held, at) = (written(&shop, &sold), sold.reserved_at.0.to_string());
    let id = held[2].clone();
    assert_eq!(id.len(), 22);
    assert_eq!(held, ["h", "1", &id, "ann", "1", &at]);
    shop.confirm(&sold).await;
    assert_eq!(written(&shop, &sold), ["c", "1", &id, "ann", "1", &at]);

    let at = lost.reserved_at.0.to_string();
    let id = written(&shop, &lost)[2].clone();
    let held = format!("{}:{{shoe#0}}:held", shop.namespace);
    let due = ["ZADD", &held, "1", &lost.request_id.to_string()];
    assert_eq!(raw::command(&shop.redis, &due), ":0");
    shop.stock.claim_overdue(&shop.bucket).await.expect("an answer");
    assert_eq!(written(&shop, &lost), ["h", "1", &id, "bob", "2", &at, "1"], "a try");
    let verdict = rejected();
    shop.restore(&lost, verdict.clone()).await;
    let expected = ["r", "1", &id, "bob", "2", &at, "1", &verdict.to_string()];
    assert_eq!(written(&shop, &lost), expected, "and a verdict");
}

#[tokio::test]
async fn nobody_is_counted_where_there_is_no_limit() {
    let decided = purchase("cid", "1", 1);
    let orders = [OrderRecord {
        request_id: decided.request_id,
        reservation_id: decided.reservation_id,
        buyer: decided.buyer.clone(),
        quantity: decided.quantity,
        verdict: Verdict::Confirmed(decided.reservation_id),
        buyer_total: 1,
    }];
    for (limit, counted) in [(None, 0), (Some(3), 2)] {
        let shop = Shop::closed().await;
        shop.warm(&plan(1, 9, limit)).await;
        shop.stock.warm_page(&shop.bucket, 1, &orders, true).await.expect("an answer");
        shop.stock.open(&shop.bucket, 1).await.expect("an answer");
        let (sold, lost) =
            (shop.hold(&purchase("ann", "1", 1)).await, shop.hold(&purchase("bob", "1", 2)).await);
        shop.confirm(&sold).await;
        shop.restore(&lost, rejected()).await;
        shop.restore(&unseen(&purchase("eve", "1", 1)), rejected()).await;
        let page = shop.stock.scan_totals(&shop.bucket, 0).await.expect("an answer");
        assert_eq!(page.totals.len(), counted, "{limit:?}: {page:?}");
        assert_eq!(shop.numbers().await, (8, 1, 0));
    }
}

#[tokio::test]
async fn purchases_of_one_buyer_in_one_batch_are_counted_together() {
    let shop = Shop::selling(9, Some(3)).await;
    let ann = ["1", "2", "3"].map(|key| purchase("ann", key, 2));
    let batch = [ann[0].clone(), purchase("bob", "1", 3), purchase("ann", "4", 1), ann[1].clone()];
    let replies = shop.reserve(&batch).await;
    assert!(replies[..3].iter().all(is_held), "{replies:?}");
    assert_eq!(replies[3], LIMIT_REACHED);
    let names = ["ann", "bob"].map(super::buyer);
    let totals = shop.stock.read_totals(&shop.bucket, &names).await.expect("an answer");
    assert_eq!(totals, [3, 3]);
    assert_eq!(shop.reserve_one(&ann[2]).await, LIMIT_REACHED);
}

#[tokio::test]
async fn a_forgotten_hold_that_is_asked_for_twice_at_once_takes_once() {
    let shop = Shop::selling(9, None).await;
    let request = purchase("ann", "1", 2);
    shop.hold(&request).await;
    shop.forget_sale();
    let shop = Shop { layout: super::Layout { epoch: 2, ..shop.layout }, ..shop };
    shop.open(&plan(2, 9, None)).await;
    let replies = shop.reserve(&[again(&request), again(&request)]).await;
    assert!(is_held(&replies[0]), "{replies:?}");
    assert!(matches!(replies[1], ReserveReply::Repeat { .. }), "{replies:?}");
    assert_eq!(shop.numbers().await.0, 7);
}

fn used_memory(shop: &Shop) -> usize {
    let info = raw::command(&shop.redis, &["INFO", "memory"]);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|bytes| bytes.parse().ok()).expect("bytes")
}

/// Bytes of a hold, and of the same order once it is settled.
async fn weighed(plan: BucketPlan) -> (usize, usize) {
    let redis = Private::<RedisRecipe>::start().await;
    // Names of a usual length: they are part of every key.
    let bucket = Bucket { item: "shoes-42".parse().expect("an item"), number: 0 };
    let shop = Shop::at(&Shop::on(&redis).redis, &"lastunit".parse().expect("a namespace"));
    let shop = Shop { bucket, ..shop };
    shop.open(&plan).await;
    // Both scripts are known before the first measurement.
    shop.confirm(&shop.hold(&purchase("first", "1", 1)).await).await;
    let empty = used_memory(&shop);
    let requests: Vec<ReserveRequest> =
        (0..BUYERS).map(|number| purchase(&format!("buyer-{number:06}"), "1", 1)).collect();
    let mut holds = Vec::new();
    for batch in requests.chunks(RESERVE_BATCH) {
        for reply in shop.reserve(batch).await {
            let ReserveReply::Held(reservation) = reply else { panic!("{reply:?}") };
            holds.push(reservation);
        }
    }
    let held = used_memory(&shop) - empty;
    for batch in holds.chunks(SETTLE_BATCH) {
        shop.stock.confirm(&shop.bucket.item, batch).await.expect("an answer");
    }
    let settled = used_memory(&shop) - empty;
    (held / BUYERS, settled / BUYERS)
}

#[tokio::test]
async fn a_hold_takes_400_bytes_at_most_and_a_settled_order_250() {
    let (held, settled) = weighed(plan(1, 1_000_000, None)).await;
    assert!(held <= 400 && settled <= 250, "{held} and {settled} bytes");
}

#[tokio::test]
async fn a_limit_per_buyer_takes_70_bytes_more_for_each_buyer() {
    let (held, settled) = weighed(plan(1, 1_000_000, Some(5))).await;
    assert!(held <= 420 && settled <= 320, "{held} and {settled} bytes");
}
