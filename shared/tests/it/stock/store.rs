//! Which store a Redis is, and what it says of itself.

use shared::config;
use shared::devstack::RedisRecipe;
use shared::domain::StoreId;
use shared::stock::{BindReply, Server, Stock};

use super::{Shop, raw};
use crate::scratch::Private;

async fn bind(shop: &Shop, store: StoreId, replaced: Option<StoreId>) -> BindReply {
    shop.stock.bind_store(store, replaced).await.expect("an answer")
}

#[tokio::test]
async fn a_redis_is_no_store_until_it_is_bound_and_then_stays_the_one_it_is() {
    let shop = Shop::closed().await;
    assert_eq!(shop.stock.store().await.expect("an answer"), None);
    let (store, other) = (StoreId::mint(), StoreId::mint());
    assert_eq!(bind(&shop, store, None).await, BindReply::Bound);
    assert_eq!(bind(&shop, store, None).await, BindReply::Bound, "the same again");
    assert_eq!(bind(&shop, other, None).await, BindReply::Already(store));
    let a_third = Some(StoreId::mint());
    assert_eq!(bind(&shop, other, a_third).await, BindReply::Already(store));
    assert_eq!(shop.stock.store().await.expect("an answer"), Some(store));
}

#[tokio::test]
async fn a_redis_that_was_bound_late_follows_the_ledger() {
    let shop = Shop::closed().await;
    let (late, newest) = (StoreId::mint(), StoreId::mint());
    // Whoever named `late` in the ledger was stopped until somebody else had replaced it there.
    assert_eq!(bind(&shop, late, None).await, BindReply::Bound);
    assert_eq!(bind(&shop, newest, Some(late)).await, BindReply::Bound);
    assert_eq!(bind(&shop, late, None).await, BindReply::Already(newest));
    assert_eq!(shop.stock.store().await.expect("an answer"), Some(newest));
}

#[tokio::test]
async fn of_two_that_bind_at_once_one_wins() {
    let shop = Shop::closed().await;
    let (one, other) = (StoreId::mint(), StoreId::mint());
    let replies = tokio::join!(bind(&shop, one, None), bind(&shop, other, None));
    let winner = shop.stock.store().await.expect("an answer").expect("a store");
    let expected = if winner == one {
        (BindReply::Bound, BindReply::Already(one))
    } else {
        (BindReply::Already(other), BindReply::Bound)
    };
    assert_eq!(replies, expected);
}

/// What the one server tells.
async fn of(stock: &Stock) -> Server {
    let [server] = stock.servers().await.expect("an answer").try_into().expect("one server");
    server
}

#[tokio::test]
async fn a_redis_says_how_old_it_is_and_what_it_does_when_it_is_full() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    let server = of(&shop.stock).await;
    assert_eq!(
        (server.address.clone(), server.is_cluster),
        (shop.redis.url.address(), Some(false))
    );
    assert!(server.major_version().is_some_and(|major| major >= 7), "{server:?}");
    assert_eq!(server.maxmemory_policy.as_deref(), Some("noeviction"));
    raw::command(&shop.redis, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let server = of(&shop.stock).await;
    assert_eq!(server.maxmemory_policy.as_deref(), Some("allkeys-lru"));
}

#[tokio::test]
async fn a_redis_that_may_not_be_asked_says_nothing_of_itself_and_works() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    let shy = ["ACL", "SETUSER", "shy", "on", ">hush", "~*", "+@all", "-info"];
    assert_eq!(raw::command(&shop.redis, &shy), "+OK");
    let url = format!("redis://shy:hush@{}/0", shop.redis.url.address());
    let config = config::Redis { url: url.parse().expect("a URL"), ..shop.redis.clone() };
    let stock = Stock::connect(&config, &shop.namespace).expect("a URL");
    let address = shop.redis.url.address();
    assert_eq!(of(&stock).await, Server { address, ..Server::default() });
    assert_eq!(stock.store().await.expect("an answer"), None);
}
