//! `begin_warm` raises the epoch and reads everything that Redis is built from.

use futures_util::future::join_all;
use shared::domain::OrderState;

use super::{Books, item_id, reservation};

#[tokio::test]
async fn each_warm_up_has_an_epoch_of_its_own_also_when_several_begin_at_once() {
    let books = Books::selling(9, None).await;
    let item = item_id("shoe");
    let begun = join_all((0..4).map(|_| books.ledger.begin_warm(&item))).await;
    let mut epochs: Vec<u64> =
        begun.into_iter().map(|plan| plan.expect("an answer").expect("there").item.epoch).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2, 3, 4]);
    assert_eq!(books.item("shoe").await.epoch, 4);
}

#[tokio::test]
async fn it_reads_stock_every_order_and_every_buyers_total() {
    let books = Books::selling(9, Some(5)).await;
    books.put("hat", 9, None).await;
    let batch = [
        reservation("shoe", "ann", "1", 2),
        reservation("shoe", "ann", "2", 3),
        reservation("shoe", "ann", "3", 1),
        reservation("shoe", "bob", "1", 1),
        reservation("shoe", "cid", "1", 4),
        reservation("hat", "ann", "1", 7),
    ];
    books.commit(&batch).await;
    let late = reservation("shoe", "dan", "1", 1);
    books.expire(&late).await;

    let plan = books.ledger.begin_warm(&item_id("shoe")).await.expect("an answer").expect("there");
    assert_eq!((plan.item.epoch, plan.item.available, plan.confirmed_units), (1, 3, 6));
    assert_eq!(plan.item.sale.limit_per_buyer, Some(5));
    let mut orders: Vec<_> = plan
        .orders
        .iter()
        .map(|warm| {
            let sold = warm.order.state == OrderState::Confirmed;
            (warm.order.buyer.to_string(), warm.order.quantity.units(), sold, warm.buyer_total)
        })
        .collect();
    orders.sort();
    let expected = [
        ("ann".to_owned(), 1, false, 5),
        ("ann".to_owned(), 2, true, 5),
        ("ann".to_owned(), 3, true, 5),
        ("bob".to_owned(), 1, true, 1),
        ("cid".to_owned(), 4, false, 0),
        ("dan".to_owned(), 1, false, 0),
    ];
    assert_eq!(orders, expected, "losers too: their keys are repeated as well");
}

#[tokio::test]
async fn an_item_that_does_not_exist_cannot_be_warmed() {
    let begun = Books::new().await.ledger.begin_warm(&item_id("ghost")).await;
    assert!(begun.expect("an answer").is_none());
}
