//! `expire` leaves a tombstone where nothing was decided, and never changes a decision.

use shared::domain::{Decision, OrderState, Reason};

use super::{Books, another, confirmed, ordered, reservation};

#[tokio::test]
async fn a_late_message_finds_the_tombstone_and_is_not_sold() {
    let books = Books::selling(9, None).await;
    let late = reservation("shoe", "ann", "1", 2);
    let tombstone = ordered(&late, OrderState::Expired(Reason::COMPENSATED));
    assert_eq!(books.expire(&late).await, Some(tombstone.clone()));
    assert_eq!(books.order(late.request_id).await, Some(tombstone.clone()));
    assert_eq!(books.commit_one(&late).await, Decision::Ordered(tombstone.clone()));
    assert_eq!(books.commit_one(&another(&late)).await, Decision::Surplus(tombstone));
    assert_eq!(books.item("shoe").await.available, 9);
    let counts = books.count("shoe").await;
    assert_eq!((counts.confirmed, counts.expired), (0, 1));
}

#[tokio::test]
async fn expiring_twice_leaves_the_first_tombstone() {
    let books = Books::selling(9, None).await;
    let first = reservation("shoe", "ann", "1", 2);
    let tombstone = books.expire(&first).await;
    assert_eq!(books.expire(&first).await, tombstone);
    assert_eq!(books.expire(&another(&first)).await, tombstone, "with the first reservation id");
    assert_eq!(books.count("shoe").await.expired, 1);
}

#[tokio::test]
async fn expiring_a_decided_request_tells_the_decision_and_changes_nothing() {
    let books = Books::selling(2, None).await;
    let (sold, lost) = (reservation("shoe", "ann", "1", 2), reservation("shoe", "bob", "1", 1));
    books.commit(&[sold.clone(), lost.clone()]).await;
    let before = books.item("shoe").await;
    assert_eq!(books.expire(&sold).await, Some(ordered(&sold, OrderState::Confirmed)));
    let rejected = ordered(&lost, OrderState::Rejected(Reason::SOLD_OUT));
    assert_eq!(books.expire(&lost).await, Some(rejected));
    assert_eq!(books.expire(&another(&sold)).await, Some(ordered(&sold, OrderState::Confirmed)));
    assert_eq!(books.item("shoe").await, before);
    assert_eq!(books.commit_one(&sold).await, confirmed(&sold));
}

#[tokio::test]
async fn nothing_can_be_expired_of_an_item_that_does_not_exist() {
    let books = Books::new().await;
    let ghost = reservation("ghost", "ann", "1", 1);
    assert_eq!(books.expire(&ghost).await, None);
    assert_eq!(books.order(ghost.request_id).await, None);
}
