//! What writes, and what still works when Redis is full. On a Redis of the test's own, because only
//! the server knows.

use shared::devstack::RedisRecipe;
use shared::stock::{ConfirmReply, RestoreReply, StockError};

use super::{HOUR, Shop, now, plan, purchase, raw, rejected, window};
use crate::scratch::Private;

/// How many changes of data the server has counted.
fn changes(shop: &Shop) -> String {
    let info = raw::command(&shop.redis, &["INFO", "persistence"]);
    let changes = info.lines().find(|line| line.starts_with("rdb_changes_since_last_save"));
    changes.expect("a count").to_owned()
}

#[tokio::test]
async fn losers_repeats_and_readers_write_nothing_at_all() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    shop.open(&plan(1, 2, Some(2))).await;
    let winner = purchase("ann", "1", 2);
    let reservation = shop.hold(&winner).await;
    let before = changes(&shop);

    let losers = [purchase("bob", "1", 1), purchase("ann", "2", 1), winner.clone()];
    shop.reserve(&losers).await;
    shop.find(winner.request_id).await;
    shop.snapshot().await;
    shop.stock.probe().await.expect("ready");
    assert_eq!(shop.warm(&plan(2, 9, None)).await, super::WarmReply::Live { epoch: 1 });
    assert_eq!(changes(&shop), before);

    shop.confirm(&reservation).await;
    assert_ne!(changes(&shop), before, "the count counts");
    let before = changes(&shop);
    assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Already);
    shop.restore(&reservation, rejected()).await;
    shop.reserve(&[winner]).await;
    assert_eq!(changes(&shop), before, "settling again writes nothing");
}

#[tokio::test]
async fn a_full_redis_sells_nothing_and_can_still_be_settled_and_read() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    shop.open(&plan(1, 9, None)).await;
    let (sold, lost) =
        (shop.hold(&purchase("ann", "1", 1)).await, shop.hold(&purchase("bob", "1", 2)).await);
    assert_eq!(raw::command(&shop.redis, &["CONFIG", "SET", "maxmemory", "1"]), "+OK");

    let refused = shop.stock.reserve(&shop.bucket, shop.layout, &[purchase("eve", "1", 1)]).await;
    let error = refused.expect_err("Redis is full");
    assert!(matches!(error, StockError::Refused { .. }), "{error}");
    assert!(!error.is_unknown(), "nothing was taken");
    assert!(error.to_string().contains(&shop.redis.url.address()), "{error}");
    assert!(error.to_string().contains("reserve"), "{error}");
    assert!(shop.stock.probe().await.is_err(), "not ready to sell");

    assert!(shop.find(sold.request_id).await.hold.is_some());
    assert_eq!(shop.numbers().await, (6, 0, 2));
    assert_eq!(shop.confirm(&sold).await, ConfirmReply::Done);
    assert_eq!(shop.restore(&lost, rejected()).await, RestoreReply::Done);
    assert_eq!(shop.numbers().await, (8, 1, 0));

    assert_eq!(raw::command(&shop.redis, &["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    shop.hold(&purchase("eve", "1", 1)).await;
}

#[tokio::test]
async fn a_hold_never_expires_and_a_settled_record_outlives_its_sale_by_a_day() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    let closes_at = now().plus(HOUR);
    let window = window(super::UnixMillis(now().0 - 1), closes_at);
    shop.open(&super::plan_within(window, plan(1, 9, None))).await;
    let (sold, lost) =
        (shop.hold(&purchase("ann", "1", 1)).await, shop.hold(&purchase("bob", "1", 2)).await);
    let tombstone = super::unseen(&purchase("eve", "1", 1));
    let expires = |request_id: super::RequestId| {
        let key = format!("private:{{shoe#0}}:hold:{request_id}");
        raw::command(&shop.redis, &["PEXPIRETIME", &key])
    };
    assert_eq!(expires(sold.request_id), ":-1");
    shop.confirm(&sold).await;
    shop.restore(&lost, rejected()).await;
    shop.restore(&tombstone, rejected()).await;
    let expected = format!(":{}", closes_at.0 + DAY_MS);
    for settled in [sold, lost, tombstone] {
        assert_eq!(expires(settled.request_id), expected);
    }
}
