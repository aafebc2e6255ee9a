//! A ledger that has gone back in time, from the operator's side.

use std::collections::BTreeSet;

use shared::devstack::World;
use shared::domain::{BucketCount, IdempotencyKey, Quantity, RequestId, ReservationId};
use shared::ledger::Ledger;
use shared::stock::{Bucket, Layout, ReserveReply, ReserveRequest, Reserved, Stock};

use crate::command::{json, lastunit, run, stderr, stdout};

/// Sells one unit to each buyer, as the services do, and returns what was decided.
async fn sell(ledger: &Ledger, stock: &Stock, bucket: &Bucket, buyers: &[&str]) -> Vec<RequestId> {
    let key: IdempotencyKey = "key-1".parse().expect("a key");
    let requests = buyers.iter().map(|buyer| {
        let buyer = buyer.parse().expect("a buyer");
        ReserveRequest {
            request_id: RequestId::derive(&buyer, &bucket.item, &key),
            reservation_id: ReservationId::mint(),
            buyer,
            quantity: Quantity::new(1).expect("a quantity"),
        }
    });
    let requests: Vec<_> = requests.collect();
    let layout = Layout { epoch: 1, buckets: BucketCount::ONE };
    let Reserved::Answered(replies) =
        stock.reserve(bucket, layout, &requests).await.expect("Redis")
    else {
        panic!("the item is warm")
    };
    let held = replies.into_iter().map(|reply| match reply {
        ReserveReply::Held(reservation) => reservation,
        other => panic!("stock is held: {other:?}"),
    });
    let held: Vec<_> = held.collect();
    ledger.commit(&held).await.expect("the ledger");
    stock.confirm(&bucket.item, &held).await.expect("Redis");
    held.into_iter().map(|one| one.request_id).collect()
}

#[tokio::test]
async fn a_ledger_that_has_gone_back_in_time_is_reported_with_the_requests_that_it_lacks() {
    let World { config } = World::new().await;
    assert!(run(lastunit(&config).args(["item", "put", "shoe", "--total", "5"])).status.success());
    assert!(run(lastunit(&config).args(["warm", "shoe"])).status.success());
    let ledger = Ledger::connect(&config.ledger).expect("a ledger");
    let stock = Stock::connect(&config.redis, &config.namespace).expect("a URL");
    let bucket = Bucket { item: "shoe".parse().expect("an item"), number: 0 };
    sell(&ledger, &stock, &bucket, &["ann"]).await;
    let lost = sell(&ledger, &stock, &bucket, &["bob", "carol"]).await;
    let plan = run(lastunit(&config).args(["reconcile", "shoe", "--plan"]));
    assert!(plan.status.success(), "{}", stdout(&plan));

    ledger
        .meddle(
            "DELETE FROM orders WHERE buyer_id IN ('bob', 'carol');
             UPDATE items SET available = available + 2;",
        )
        .await
        .expect("restored");
    let plan = run(lastunit(&config).args(["reconcile", "shoe", "--plan"]));
    assert_eq!(plan.status.code(), Some(1), "{}", stderr(&plan));
    let text = stdout(&plan);
    assert!(text.contains("the ledger has gone back in time: 2 units"), "{text}");
    for request_id in &lost {
        assert!(text.contains(&request_id.to_string()), "{text}");
    }
    let output = run(lastunit(&config).args(["reconcile", "shoe", "--plan", "--json"]));
    assert_eq!(output.status.code(), Some(1));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&plan[0]["ledger_behind"], &plan[0]["agrees"]), (&2.into(), &false.into()));
    let causes = plan[0]["causes"].as_array().expect("causes");
    let named: BTreeSet<_> = causes.iter().filter_map(|one| one["request_id"].as_str()).collect();
    assert_eq!(
        named,
        lost.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect()
    );

    let available = async || stock.snapshot(&bucket).await.expect("Redis").expect("shoe").available;
    let applied = run(lastunit(&config).args(["reconcile", "shoe", "--apply"]));
    assert_eq!(applied.status.code(), Some(1), "it does not agree before they are decided");
    assert!(stdout(&applied).contains("2 orders were published again"), "{}", stdout(&applied));
    assert_eq!(available().await, 2, "nothing is raised");
    // Nor when an operator vouches for the ledger, as long as Redis has records of them.
    let vouched =
        run(lastunit(&config).args(["reconcile", "shoe", "--apply", "--ledger-restored"]));
    assert_eq!(vouched.status.code(), Some(1), "{}", stdout(&vouched));
    assert!(stdout(&vouched).contains("2 orders were published again"), "{}", stdout(&vouched));
    assert_eq!(available().await, 2);
    let shown = json(lastunit(&config).args(["item", "show", "shoe", "--json"]));
    assert_eq!((&shown["redis_available"], &shown["ledger_available"]), (&2.into(), &4.into()));
}
