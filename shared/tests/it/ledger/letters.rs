//! Dead letters: parked once, counted each time they die, and remembered.

use shared::domain::{EnvironmentId, LetterKind, LetterState, Reservation};
use shared::ledger::{KeptLetter, Letter, Subject};
use uuid::Uuid;

use super::{Books, reservation};

/// The letter of a reservation, as one death brings it.
fn letter(reservation: &Reservation, death: &str) -> Letter {
    Letter {
        letter_id: reservation.reservation_id.as_uuid(),
        kind: LetterKind::Reservation,
        subject: Some(Subject {
            environment: EnvironmentId::from_uuid(Uuid::nil()),
            reservation_id: reservation.reservation_id,
            request_id: reservation.request_id,
            item: reservation.item.clone(),
            buyer: reservation.buyer.clone(),
        }),
        reason: "hopeless".to_owned(),
        error: format!("row 7 of {} is wrong", reservation.request_id),
        source: "orders".to_owned(),
        headers: r#"{"x-death": [{"count": 3}]}"#.to_owned(),
        message_id: Some(death.to_owned()),
        body: b"first".to_vec(),
    }
}

async fn kept(books: &Books, letter_id: Uuid) -> KeptLetter {
    books.ledger.find_letter(letter_id).await.expect("an answer").expect("a letter")
}

#[tokio::test]
async fn the_same_letter_twice_is_one_row_with_its_attempts_counted() {
    let books = Books::new().await;
    let first = letter(&reservation("shoe", "ann", "1", 1), "death 1");
    let second = Letter {
        message_id: Some("death 2".to_owned()),
        reason: "unknown_item".to_owned(),
        headers: "{}".to_owned(),
        body: b"second".to_vec(),
        ..first.clone()
    };
    books.ledger.park(std::slice::from_ref(&first)).await.expect("parked");
    let one = kept(&books, first.letter_id).await;
    assert_eq!((one.attempts, one.state), (1, LetterState::Parked));
    assert_eq!(one.fingerprint, "row # of <id> is wrong");
    assert_eq!(one.headers, r#"{"x-death": [{"count": 3}]}"#);

    books.ledger.park(&[second.clone(), second]).await.expect("parked");
    let two = kept(&books, first.letter_id).await;
    assert_eq!(two.attempts, 2, "one death delivered twice is one death");
    assert_eq!(two.reason, "unknown_item", "the latest story");
    assert_eq!(two.body, b"first", "the bytes as they first came");
    assert_eq!(two.headers, "{}", "headers do not pile up");
    assert_eq!(two.first_died_at, one.first_died_at);
    assert!(two.last_died_at > one.last_died_at);
    let acts = books.ledger.letter_acts(first.letter_id).await.expect("acts");
    let story: Vec<_> = acts.iter().map(|act| (act.what.as_str(), act.outcome.as_str())).collect();
    assert_eq!(story, [("died", "hopeless"), ("died", "unknown_item")]);
}

#[tokio::test]
async fn bytes_that_no_text_column_takes_are_kept_exactly() {
    let books = Books::new().await;
    let strange = Letter {
        kind: LetterKind::Unreadable,
        subject: None,
        reason: "a\0b".to_owned(),
        error: "\0".to_owned(),
        body: vec![0, 255, 0, 128],
        message_id: None,
        ..letter(&reservation("shoe", "ann", "1", 1), "")
    };
    books.ledger.park(&[strange.clone(), strange.clone()]).await.expect("parked");
    let kept = kept(&books, strange.letter_id).await;
    assert_eq!(kept.body, strange.body);
    assert_eq!(kept.attempts, 2, "without a name each counts");
}
