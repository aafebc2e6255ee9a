//! `count_orders` counts one by one, independently of the counter that sells.

use shared::ledger::OrderCounts;

use super::{Books, reservation};

const NOTHING: OrderCounts = OrderCounts {
    buyers: 0,
    confirmed: 0,
    confirmed_units: 0,
    rejected: 0,
    expired: 0,
    most_by_one_buyer: 0,
};

#[tokio::test]
async fn orders_are_counted_by_class_and_by_buyer() {
    let books = Books::selling(6, Some(4)).await;
    assert_eq!(books.count("shoe").await, NOTHING);
    let batch = [
        reservation("shoe", "ann", "1", 3),
        reservation("shoe", "ann", "2", 1),
        reservation("shoe", "ann", "3", 1),
        reservation("shoe", "bob", "1", 2),
        reservation("shoe", "cid", "1", 1),
    ];
    books.commit(&batch).await;
    books.expire(&reservation("shoe", "dan", "1", 1)).await;
    let expected = OrderCounts {
        buyers: 4,
        confirmed: 3,
        confirmed_units: 6,
        rejected: 2,
        expired: 1,
        most_by_one_buyer: 4,
    };
    assert_eq!(books.count("shoe").await, expected);
    assert_eq!(books.count("ghost").await, NOTHING);
}
