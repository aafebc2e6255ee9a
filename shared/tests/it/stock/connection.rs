//! The connection is lost, and replaced by itself.

use std::time::{Duration, Instant};

use shared::config::RedisMode;
use shared::devstack::RedisRecipe;
use shared::stock::{Reserved, StockError};

use super::{Shop, plan, purchase, raw};
use crate::eventually::eventually;
use crate::scratch::Private;

/// A call while Redis is away may take this long at most.
const FAST: Duration = Duration::from_secs(1);
/// How soon after its return Redis is used again.
const BACK: Duration = Duration::from_secs(2);

async fn works_again(shop: &Shop) {
    eventually("Redis is used again", BACK, || async { shop.stock.probe().await.ok() }).await;
}

#[tokio::test]
async fn calls_fail_fast_while_redis_is_away_and_work_again_soon_after_its_return() {
    let mut redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    shop.open(&plan(1, 9, None)).await;
    let request = purchase("ann", "1", 2);
    let reservation = shop.hold(&request).await;

    redis.kill().await;
    let unreachable = || async {
        let since = Instant::now();
        let error = shop.stock.probe().await.expect_err("nobody listens");
        assert!(since.elapsed() < FAST, "{:?}: {error}", since.elapsed());
        matches!(error, StockError::Unreachable { .. }).then_some(error)
    };
    let error = eventually("it is known to be away", BACK, unreachable).await;
    assert!(!error.is_unknown(), "nothing was sent");
    let address = shop.redis.url.address();
    assert!(
        error.to_string().starts_with(&format!("cannot reach Redis at {address}: ")),
        "{error}"
    );
    // A crowd does not queue up behind the missing connection.
    let since = Instant::now();
    let crowd: Vec<_> = (0..200).map(|_| shop.stock.probe()).collect();
    for outcome in futures_util::future::join_all(crowd).await {
        assert!(matches!(outcome, Err(StockError::Unreachable { .. })));
    }
    assert!(since.elapsed() < FAST, "{:?}", since.elapsed());

    redis.restart().await;
    works_again(&shop).await;
    // Its scripts went with the process, its data did not; but that has to be shown first.
    let reply = shop.stock.reserve(&shop.bucket, shop.layout, std::slice::from_ref(&request)).await;
    assert_eq!(reply.expect("an answer"), Reserved::NotReady);
    shop.stamp().await;
    assert_eq!(shop.hold(&request).await, reservation);
    assert_eq!(shop.numbers().await, (7, 0, 1));
}

#[tokio::test]
async fn a_cut_connection_is_replaced_while_redis_stays() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    shop.open(&plan(1, 9, None)).await;
    for round in 0..5 {
        let cut = raw::command(&shop.redis, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        assert_eq!(cut, ":1");
        works_again(&shop).await;
        shop.hold(&purchase("ann", &round.to_string(), 1)).await;
    }
    assert_eq!(shop.numbers().await, (4, 0, 5));
}

#[tokio::test]
async fn scripts_that_redis_forgot_are_sent_again() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    shop.open(&plan(1, 50, None)).await;
    shop.hold(&purchase("ann", "1", 1)).await;
    assert_eq!(raw::command(&shop.redis, &["SCRIPT", "FLUSH"]), "+OK");
    let crowd: Vec<_> = (0..50).map(|n| purchase(&format!("buyer-{n}"), "1", 1)).collect();
    let replies = crowd.iter().map(|request| shop.reserve_one(request));
    let replies = futures_util::future::join_all(replies).await;
    assert_eq!(replies.iter().filter(|reply| super::is_held(reply)).count(), 49);
    assert_eq!(shop.numbers().await, (0, 0, 50));
}

#[tokio::test]
async fn a_redis_that_stays_silent_leaves_an_unknown_outcome_that_asking_again_clears_up() {
    let redis = Private::<RedisRecipe>::start().await;
    let shop = Shop::on(&redis);
    shop.open(&plan(1, 9, None)).await;
    shop.hold(&purchase("ann", "1", 1)).await;

    redis.backend().pause();
    let request = purchase("bob", "1", 2);
    let since = Instant::now();
    let asked = shop.stock.reserve(&shop.bucket, shop.layout, std::slice::from_ref(&request)).await;
    let error = asked.expect_err("it does not answer");
    assert!(error.is_unknown(), "{error}");
    assert!(error.to_string().contains(&shop.redis.url.address()), "{error}");
    assert!(since.elapsed() < 3 * FAST, "{:?}", since.elapsed());
    redis.backend().resume();

    works_again(&shop).await;
    let reservation = shop.hold(&request).await;
    assert_eq!(reservation.reservation_id, request.reservation_id);
    assert_eq!(shop.numbers().await, (6, 0, 2), "taken once, whether or not the first one ran");
}

#[tokio::test]
async fn a_wrong_password_is_told_and_no_secret_with_it() {
    let redis = Private::<RedisRecipe>::start().await;
    let url = format!("redis://:wrong-hush@127.0.0.1:{}/0", redis.backend().port());
    let url = url.parse().expect("a URL");
    let redis = shared::config::Redis {
        url,
        first_look_ms: 30_000,
        mode: RedisMode::Single,
        checks_incarnation: true,
        replicas: 0,
    };
    let shop = Shop::at(&redis, &"private".parse().expect("a namespace"));
    let told = || async {
        let error = shop.stock.probe().await.expect_err("no entry").to_string();
        assert!(!error.contains("hush"), "{error}");
        error.contains("not connected yet").then_some(()).map_or(Some(error), |()| None)
    };
    let error = eventually("the reason is known", BACK, told).await;
    assert!(error.to_lowercase().contains("password"), "{error}");
}
