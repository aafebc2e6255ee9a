//! `commit` decides a batch in message order, once.

use shared::domain::{BuyerId, Decision, OrderState, Quantity, Reason, Reservation, UnixMillis};

use super::{Books, another, confirmed, item_id, ordered, rejected, reservation};

#[tokio::test]
async fn a_batch_is_decided_in_message_order() {
    let books = Books::selling(5, None).await;
    let batch = [
        reservation("shoe", "ann", "1", 3),
        reservation("shoe", "bob", "1", 3),
        reservation("shoe", "cid", "1", 2),
        reservation("shoe", "dan", "1", 1),
    ];
    let expected = [
        confirmed(&batch[0]),
        rejected(&batch[1], Reason::SOLD_OUT),
        confirmed(&batch[2]),
        rejected(&batch[3], Reason::SOLD_OUT),
    ];
    assert_eq!(books.commit(&batch).await, expected);
    assert_eq!(books.item("shoe").await.available, 0);
    for (reservation, decision) in batch.iter().zip(expected) {
        let order = books.order(reservation.request_id).await.expect("losers are recorded as well");
        assert_eq!(Decision::Ordered(order), decision);
    }
    let counts = books.count("shoe").await;
    assert_eq!((counts.confirmed, counts.confirmed_units, counts.rejected), (2, 5, 2));
    books.balance("shoe").await;
}

#[tokio::test]
async fn a_batch_that_comes_again_gets_the_same_decisions_and_changes_nothing() {
    let books = Books::selling(3, Some(2)).await;
    let batch = [
        reservation("shoe", "ann", "1", 2),
        reservation("shoe", "ann", "2", 1),
        reservation("shoe", "bob", "1", 2),
    ];
    let first = books.commit(&batch).await;
    let (item, counts) = (books.item("shoe").await, books.count("shoe").await);
    assert_eq!(books.commit(&batch).await, first);
    let backwards: Vec<_> = batch.iter().rev().cloned().collect();
    let mut decisions = books.commit(&backwards).await;
    decisions.reverse();
    assert_eq!(decisions, first, "whatever comes first now");
    assert_eq!(books.item("shoe").await, item, "its version included");
    assert_eq!(books.count("shoe").await, counts);
}

#[tokio::test]
async fn a_duplicate_within_a_batch_is_sold_once() {
    let books = Books::selling(9, None).await;
    let one = reservation("shoe", "ann", "1", 2);
    let decisions = books.commit(&[one.clone(), one.clone()]).await;
    assert_eq!(decisions, [confirmed(&one), confirmed(&one)]);
    assert_eq!(books.item("shoe").await.available, 7);
}

#[tokio::test]
async fn another_reservation_of_a_decided_request_is_surplus() {
    let books = Books::selling(9, None).await;
    let first = reservation("shoe", "ann", "1", 2);
    let surplus = || Decision::Surplus(ordered(&first, OrderState::Confirmed));
    let decisions = books.commit(&[first.clone(), another(&first)]).await;
    assert_eq!(decisions, [confirmed(&first), surplus()], "within a batch");
    assert_eq!(books.commit_one(&another(&first)).await, surplus(), "and later");
    assert_eq!(books.item("shoe").await.available, 7);
    assert_eq!(books.count("shoe").await.confirmed, 1);
}

#[tokio::test]
async fn a_message_that_contradicts_its_order_is_set_aside_and_its_neighbours_are_decided() {
    let books = Books::selling(9, None).await;
    books.put("hat", 9, None).await;
    let first = reservation("shoe", "ann", "1", 2);
    books.commit_one(&first).await;
    let mismatch = Decision::Mismatch(ordered(&first, OrderState::Confirmed));
    let eve: BuyerId = "eve".parse().expect("a buyer");
    let forged = [
        Reservation { quantity: Quantity::new(1).expect("one"), ..first.clone() },
        Reservation { buyer: eve, ..first.clone() },
        Reservation { item: item_id("hat"), ..first.clone() },
    ];
    for (key, forged) in ["1", "2", "3"].into_iter().zip(forged) {
        let neighbour = reservation("shoe", "bob", key, 1);
        let decisions = books.commit(&[forged, neighbour.clone()]).await;
        assert_eq!(decisions, [mismatch.clone(), confirmed(&neighbour)]);
    }
    assert_eq!(books.item("hat").await.available, 9);
    books.balance("shoe").await;
}

#[tokio::test]
async fn an_item_that_the_ledger_does_not_know_is_set_aside() {
    let books = Books::selling(9, None).await;
    let batch = [reservation("ghost", "ann", "1", 1), reservation("shoe", "ann", "1", 1)];
    assert_eq!(books.commit(&batch).await, [Decision::UnknownItem, confirmed(&batch[1])]);
    assert_eq!(books.order(batch[0].request_id).await, None, "it may still be decided");
}

#[tokio::test]
async fn the_limit_counts_earlier_batches_and_every_item_for_itself() {
    let books = Books::selling(9, Some(3)).await;
    books.put("hat", 9, Some(1)).await;
    books.put("sock", 9, None).await;
    let first = reservation("shoe", "ann", "1", 2);
    books.commit_one(&first).await;
    let batch = [
        reservation("shoe", "ann", "2", 2),
        reservation("shoe", "ann", "3", 1),
        reservation("shoe", "ann", "4", 1),
        reservation("shoe", "bob", "1", 3),
        reservation("hat", "ann", "1", 1),
        reservation("hat", "ann", "2", 1),
        reservation("sock", "ann", "1", 9),
    ];
    let limit = |reservation| rejected(reservation, Reason::LIMIT_REACHED);
    let expected = [
        limit(&batch[0]),
        confirmed(&batch[1]),
        limit(&batch[2]),
        confirmed(&batch[3]),
        confirmed(&batch[4]),
        limit(&batch[5]),
        confirmed(&batch[6]),
    ];
    assert_eq!(books.commit(&batch).await, expected);
    assert_eq!(books.count("shoe").await.most_by_one_buyer, 3);
    for item in ["shoe", "hat", "sock"] {
        books.balance(item).await;
    }
}

#[tokio::test]
async fn only_what_sold_something_counts_a_change_of_its_item() {
    let books = Books::selling(1, None).await;
    let before = books.item("shoe").await.version;
    books.commit_one(&reservation("shoe", "ann", "1", 1)).await;
    assert_eq!(books.item("shoe").await.version, before + 1);
    books.commit_one(&reservation("shoe", "bob", "1", 1)).await;
    assert_eq!(
        books.item("shoe").await.version,
        before + 1,
        "a loser changes nothing that is on sale"
    );
}

#[tokio::test]
async fn an_empty_batch_is_decided_at_once() {
    assert_eq!(Books::new().await.commit(&[]).await, []);
}

#[tokio::test]
async fn the_largest_quantities_and_oldest_times_fit() {
    let books = Books::selling(1_000_000_000, None).await;
    for (key, reserved_at) in [("1", UnixMillis(0)), ("2", UnixMillis(u64::MAX))] {
        let largest = reservation("shoe", "ann", key, 1_000_000);
        let odd = Reservation { reserved_at, ..largest };
        assert_eq!(books.commit_one(&odd).await, confirmed(&odd));
    }
    assert_eq!(books.item("shoe").await.available, 998_000_000);
}
