//! A warm-up raises the epoch, then reads everything that Redis is built from.

use futures_util::future::join_all;
use shared::domain::OrderState;
use shared::ledger::{WarmOrder, WarmReading};

use super::{Books, item_id, reservation};

#[tokio::test]
async fn each_warm_up_has_an_epoch_of_its_own_also_when_several_begin_at_once() {
    let books = Books::selling(9, None).await;
    let mut epochs = join_all((0..4).map(|_| books.begin_warm("shoe"))).await;
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2, 3, 4]);
    assert_eq!(books.item("shoe").await.epoch, 4);
}

#[tokio::test]
async fn an_epoch_is_above_every_one_that_redis_has_seen() {
    let books = Books::selling(9, None).await;
    let begun = books.ledger.begin_warm(&item_id("shoe"), 0, 7, None).await;
    assert_eq!(begun.expect("an answer"), Some(8));
    assert_eq!(books.begin_warm("shoe").await, 9);
}

#[tokio::test]
async fn whoever_has_lost_the_lock_begins_nothing() {
    let books = Books::selling(9, None).await;
    let shoe = item_id("shoe");
    assert!(books.ledger.claim_fence(&shoe, 5).await.expect("an answer"));
    for (fence, begins) in [(4, false), (5, true)] {
        let begun = books.ledger.begin_warm(&shoe, fence, 0, None).await.expect("an answer");
        assert_eq!(begun.is_some(), begins, "under fence {fence}");
    }
    assert_eq!(books.item("shoe").await.epoch, 1);
}

/// All pages of a reading.
async fn all_orders(books: &Books, reading: &mut WarmReading, most: usize) -> Vec<WarmOrder> {
    let mut orders = Vec::new();
    loop {
        let page = books.ledger.next_orders(reading, most).await.expect("a page");
        assert!(page.len() <= most);
        if page.is_empty() {
            return orders;
        }
        orders.extend(page);
    }
}

async fn read(books: &Books) -> WarmReading {
    books.ledger.read_for_warm(&item_id("shoe")).await.expect("an answer").expect("an item")
}

#[tokio::test]
async fn it_reads_stock_every_order_and_every_buyers_total_in_pages_of_any_size() {
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
    books.begin_warm("shoe").await;
    for most in [1, 2, 3, 100] {
        let mut reading = read(&books).await;
        let item = &reading.item;
        assert_eq!((item.epoch, item.available, item.confirmed_units()), (1, 3, 6));
        assert_eq!(item.sale.limit_per_buyer, Some(5));
        let mut orders: Vec<_> = all_orders(&books, &mut reading, most)
            .await
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
}

#[tokio::test]
async fn a_reading_shows_one_instant_however_long_it_takes() {
    let books = Books::selling(9, None).await;
    books.commit_one(&reservation("shoe", "ann", "1", 2)).await;
    let mut reading = read(&books).await;
    books.commit_one(&reservation("shoe", "bob", "1", 1)).await;
    let orders = all_orders(&books, &mut reading, 1).await;
    assert_eq!((reading.item.available, orders.len()), (7, 1), "bob's order came later");
    assert_eq!(books.item("shoe").await.available, 6, "and did not wait for the reading");
}

#[tokio::test]
async fn an_item_that_does_not_exist_cannot_be_warmed() {
    let books = Books::new().await;
    let begun = books.ledger.begin_warm(&item_id("ghost"), 0, 0, None).await;
    assert_eq!(begun.expect("an answer"), None);
    assert!(books.ledger.read_for_warm(&item_id("ghost")).await.expect("an answer").is_none());
}
