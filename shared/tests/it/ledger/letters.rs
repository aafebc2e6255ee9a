//! Dead letters: parked once, counted each time they die, and remembered.

use shared::domain::{EnvironmentId, LetterEvent, LetterKind, LetterState, Reservation};
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

/// Puts the letter into a state as if it had come there long ago.
async fn put_into(books: &Books, letter_id: Uuid, state: LetterState) {
    let settled = matches!(state, LetterState::Replayed | LetterState::Discarded);
    let settled_at = if settled { "now()" } else { "NULL" };
    books
        .ledger
        .meddle(&format!(
            "UPDATE dead_letters
             SET state = '{state}', settled_at = {settled_at}, run_id = NULL, discard_reason = NULL,
                 claimed_until = now() - interval '1 hour', last_died_at = now() - interval '1 hour'
             WHERE letter_id = '{letter_id}'"
        ))
        .await
        .expect("meddled");
}

/// Lets an event happen to the letter, as the room's verbs do it.
async fn happens(books: &Books, letter: &Letter, event: LetterEvent, death: &str) {
    let (ledger, ids) = (&books.ledger, [letter.letter_id]);
    let environment = letter.subject.as_ref().expect("a subject").environment;
    let run = ledger.begin_letter_run("trial").await.expect("a run");
    match event {
        LetterEvent::Die => {
            let again = Letter { message_id: Some(death.to_owned()), ..letter.clone() };
            ledger.park(&[again]).await.expect("parked");
        }
        LetterEvent::Take => {
            drop(ledger.claim_letters(&run, environment, &ids).await.expect("an answer"));
        }
        LetterEvent::Send => {
            books
                .ledger
                .meddle(&format!("UPDATE dead_letters SET run_id = '{}'", run.run_id))
                .await
                .expect("in this run's hands");
            ledger.letters_sent(&run, &ids).await.expect("an answer");
        }
        LetterEvent::PutBack => {
            let in_hand = format!("UPDATE dead_letters SET run_id = '{}'", run.run_id);
            ledger.meddle(&in_hand).await.expect("in this run's hands");
            ledger.put_letters_back(&run, &ids).await.expect("an answer");
        }
        LetterEvent::Discard => {
            let reason = "trial".parse().expect("a reason");
            let taken = ledger.begin_discard(&run, &reason, &ids).await.expect("an answer");
            let ends: Vec<_> = taken.iter().map(|taken| (taken.letter_id, "dropped")).collect();
            ledger.end_discard(&run, &ends).await.expect("an answer");
        }
    }
}

#[tokio::test]
async fn statements_take_exactly_the_steps_of_the_table() {
    let books = Books::new().await;
    let letter = letter(&reservation("shoe", "ann", "1", 1), "first");
    books.ledger.park(std::slice::from_ref(&letter)).await.expect("parked");
    let events = [
        LetterEvent::Die,
        LetterEvent::Take,
        LetterEvent::Send,
        LetterEvent::PutBack,
        LetterEvent::Discard,
    ];
    for from in LetterState::ALL {
        for event in events {
            put_into(&books, letter.letter_id, from).await;
            happens(&books, &letter, event, &format!("{from} {event:?}")).await;
            let to = kept(&books, letter.letter_id).await.state;
            assert_eq!(to, from.next(event).unwrap_or(from), "{from}, {event:?}");
        }
    }
}

#[tokio::test]
async fn a_letter_is_in_one_runs_hands_until_its_lease_has_passed() {
    let books = Books::new().await;
    let letter = letter(&reservation("shoe", "ann", "1", 1), "first");
    let environment = letter.subject.as_ref().expect("a subject").environment;
    let (ledger, ids) = (&books.ledger, [letter.letter_id]);
    let early = ledger.begin_letter_run("early").await.expect("a run");
    ledger.park(std::slice::from_ref(&letter)).await.expect("parked");
    let claim = async |run| ledger.claim_letters(run, environment, &ids).await.expect("it").len();
    assert_eq!(claim(&early).await, 0, "it died after that run began");
    let one = ledger.begin_letter_run("one").await.expect("a run");
    let other = ledger.begin_letter_run("other").await.expect("a run");
    assert_eq!(claim(&one).await, 1);
    assert_eq!(claim(&other).await, 0, "it is in hand");
    let reason = "trial".parse().expect("a reason");
    assert_eq!(ledger.begin_discard(&other, &reason, &ids).await.expect("it").len(), 0);
    ledger.meddle("UPDATE dead_letters SET claimed_until = now()").await.expect("lapsed");
    assert_eq!(claim(&other).await, 1, "taken over");
    ledger.letters_sent(&one, &ids).await.expect("too late");
    assert_eq!(kept(&books, letter.letter_id).await.state, LetterState::Replaying);
    ledger.letters_sent(&other, &ids).await.expect("sent");
    assert_eq!(kept(&books, letter.letter_id).await.state, LetterState::Replayed);
}

#[tokio::test]
async fn letters_of_before_find_their_kind_and_their_environment() {
    let books = Books::new().await;
    // As an earlier release left them; the migration's own statements are run again.
    let migration = include_str!("../../../../migrations/postgres/0008_keep_letters.sql");
    let backfill = migration.split(';').find(|part| part.contains("UPDATE dead_letters"));
    let id = "0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77";
    let body = format!(r#"{{"environment": "{id}"}}"#);
    books
        .ledger
        .meddle(&format!(
            "INSERT INTO dead_letters (letter_id, reservation_id, reason, error, source, body,
                                       first_died_at, last_died_at)
             VALUES ('{id}', '{id}', 'x', 'line 7', 'orders', '{body}', now(), now()),
                    (gen_random_uuid(), '{id}', 'x', 'line 8', 'orders', '{body}', now(), now()),
                    (gen_random_uuid(), NULL, 'x', 'line 9', 'orders', '\\xff', now(), now())"
        ))
        .await
        .expect("old letters");
    books.ledger.meddle(backfill.expect("a statement")).await.expect("migrated");
    let counted = "DO $$ BEGIN
        ASSERT (SELECT array_agg(kind || ' ' || fingerprint || ' ' || coalesce(environment_id::text, '-')
                                 ORDER BY kind) FROM dead_letters)
             = ARRAY['compensation line # 0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77',
                     'reservation line # 0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77',
                     'unreadable line # -'];
    END $$";
    books.ledger.meddle(counted).await.expect("kinds and environments");
}
