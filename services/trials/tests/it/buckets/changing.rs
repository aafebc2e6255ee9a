//! The number of buckets changes while people buy.

use shared::stock::{Bucket, Layout, ReserveRequest, Reserved};
use trials::buyer::Buyer;
use trials::desk::{Desk, only};
use trials::line::{Line, Service, limited, sale};
use trials::messages::{hold, reservation};

use super::visitors::{LIMIT, Visitors};
use super::{buys, count, decide, divide, selling, who_lives_in};

/// Asks every bucket of an old layout for a unit, and gets none.
async fn sells_nothing_under(old: Layout, now: Layout, line: &Line, item: &shared::domain::ItemId) {
    for bucket in Bucket::all(item, old.buckets) {
        let name = who_lives_in(bucket.number, old.buckets.get(), 0);
        let made = reservation(item, &name, "late", 1);
        let request = ReserveRequest {
            request_id: made.request_id,
            reservation_id: made.reservation_id,
            buyer: made.buyer,
            quantity: made.quantity,
        };
        let reply = line.stock.reserve(&bucket, old, &[request]).await.expect("an answer");
        assert_eq!(reply, Reserved::Moved(now), "{bucket:?} under {old:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_divided_into_sixteen_and_into_three_while_people_buy() {
    let shoes = limited("shoe", 1_000_000, LIMIT);
    let (mut line, doors) = selling(&shoes, 1).await;
    let idle = line.ingress().await;
    decide(&mut line);
    line.start(Service::Reconciler);
    buys(idle, "ann", "key-1", 1).await;

    let visitors = Visitors::begin(doors);
    visitors.until_more().await;
    let mut layouts = vec![Layout { epoch: 1, buckets: count(1) }];
    for (from, to) in [(1, 16), (16, 3)] {
        let done = divide(&line, &shoes.item, to).await;
        assert_eq!((done.from, done.to), (count(from), count(to)));
        layouts.push(Layout { epoch: done.epoch, buckets: done.to });
        visitors.until_more().await;
    }
    let served = visitors.end().await;

    // The ingress that sold before the changes, and nothing since, has heard of neither.
    let mut ann = Buyer::new(idle, "ann");
    let again = ann.buy_patiently("shoe", "key-1", 1).await;
    assert_eq!((again.status, again.text("status")), (200, "confirmed"), "{again:?}");
    buys(idle, "ann", "key-2", 1).await;
    let more = ann.buy_patiently("shoe", "key-3", 1).await;
    more.assert_problem(409, "limit_reached", None);

    line.until_settled(&shoes.item).await;
    let before = line.available(&shoes.item).await;
    let now = layouts.pop().expect("the last one");
    for old in layouts {
        sells_nothing_under(old, now, &line, &shoes.item).await;
    }
    assert_eq!(line.available(&shoes.item).await, before);
    let books = line.assert_law(&shoes.item).await;
    let sold = (served + 1) * LIMIT;
    assert_eq!((books.confirmed_units, books.most_by_one_buyer), (sold, LIMIT));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_whose_holds_are_not_settled_stays_as_it_is_and_sells_on() {
    let shoes = sale("shoe", 9);
    let (mut line, [door, _]) = selling(&shoes, 3).await;
    let desk = Desk::of(&line);
    let parked = hold(&line, &shoes.item, "bad", "key-1").await;
    desk.park(std::slice::from_ref(&parked)).await;
    decide(&mut line);
    for turn in 0..2 {
        let refused = reconciler::rebucket(&line.ledger, &line.stock, &shoes.item, count(5)).await;
        let refused = refused.expect_err("a letter holds stock").to_string();
        assert!(refused.contains("unsettled holds of shoe after 2 s: 1"), "{refused}");
        assert!(refused.contains("lastunit dlq list --item shoe"), "{refused}");
        let redis = line.snapshot(&shoes.item).await;
        assert!(redis.frozen.is_zero(), "nobody waits for the end of a lease");
        assert_eq!((redis.epoch, redis.buckets, redis.held), (1, count(3), 1));
        buys(door, &format!("buyer-{turn}"), "key-1", 1).await;
    }
    desk.discard(&only(&parked), "nobody_wants_it").await;
    let done = divide(&line, &shoes.item, 5).await;
    assert_eq!((done.from, done.to, done.available), (count(3), count(5), 7));
    buys(door, "all", "key-1", 7).await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (9, Some(0)));
    line.stop_all().await;
}
