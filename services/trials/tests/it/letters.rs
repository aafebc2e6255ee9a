//! Dead letters: whatever an operator does with them, every order is there once and no unit is
//! sold twice.

use shared::domain::{ItemId, LetterClass, LetterKind, LetterState, OrderState, Reservation};
use shared::ledger::{LetterFilter, LetterSort};
use trials::desk::{Desk, as_fast_as_it_goes, only};
use trials::line::{Line, Service, sale};
use trials::messages::{hold, reservation};
use trials::until::until;

use reconciler::letters::{ReplayOptions, Stopped};

/// Nobody called `bad` can buy, until the ledger is mended.
pub(crate) const BREAK: &str =
    "ALTER TABLE orders ADD CONSTRAINT no_bad CHECK (buyer_id NOT LIKE 'bad%')";
pub(crate) const MEND: &str = "ALTER TABLE orders DROP CONSTRAINT no_bad";

pub(crate) async fn state_of(line: &Line, reservation: &Reservation) -> Option<OrderState> {
    let order = line.ledger.find_order(reservation.request_id).await.expect("the ledger");
    order.map(|order| order.state)
}

pub(crate) async fn until_confirmed(line: &Line, reservation: &Reservation) {
    until("the order is confirmed", async || {
        (state_of(line, reservation).await == Some(OrderState::Confirmed)).then_some(())
    })
    .await;
}

/// Takes stock of buyers, one unit each, as if ingress had died then.
pub(crate) async fn holds(
    line: &Line,
    item: &ItemId,
    name: &str,
    count: usize,
) -> Vec<Reservation> {
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        held.push(hold(line, item, &format!("{name}-{number}"), "key-1").await);
    }
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_is_parked_while_its_item_sells_out_keeps_its_unit() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 3);
    line.sell(&shoes).await;
    line.ledger.meddle(BREAK).await.expect("broken");
    let desk = Desk::of(&line);
    let bad = hold(&line, &shoes.item, "bad", "key-1").await;
    desk.publish(&bad).await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let letter = desk.until_parked(&bad).await;
    assert_eq!((letter.reason.as_str(), letter.attempts), ("hopeless", 1));

    // Everybody else buys all that is left.
    for other in holds(&line, &shoes.item, "good", 2).await {
        desk.publish(&other).await;
        until_confirmed(&line, &other).await;
    }
    let redis = line.snapshot(&shoes.item).await;
    assert_eq!((redis.available, redis.held), (0, 1), "the parked one keeps its unit");

    let plan = desk.plan(&only(&bad)).await;
    assert_eq!(plan.by_class.get(&LetterClass::WouldConfirm), Some(&1), "{plan:?}");
    assert_eq!(plan.items[&shoes.item].units_sold, 1);
    line.ledger.meddle(MEND).await.expect("mended");
    let report = desk.replay(&only(&bad)).await;
    assert_eq!((report.sent, report.counts.confirmed), (1, 1), "{report:?}");
    assert_eq!(state_of(&line, &bad).await, Some(OrderState::Confirmed));
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, 3);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_is_replayed_three_hundred_times_stays_as_small_as_it_was() {
    const TIMES: u64 = 300;
    let mut line = Line::new().await;
    let shoes = sale("shoe", 1_000);
    line.sell(&shoes).await;
    line.ledger.meddle(BREAK).await.expect("broken");
    let desk = Desk::of(&line);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let bad = hold(&line, &shoes.item, "bad", "key-1").await;
    desk.publish(&bad).await;
    let first = desk.until_parked(&bad).await;
    for turn in 0..TIMES {
        let report = desk.replay(&only(&bad)).await;
        assert_eq!((report.sent, report.counts.died_again), (1, 1), "{turn}: {report:?}");
        if turn % 10 == 0 {
            // A consumer that parks twenty in a row stops.
            let good = reservation(&shoes.item, &format!("good-{turn}"), "key-1", 1);
            desk.publish(&good).await;
            until_confirmed(&line, &good).await;
        }
    }
    let last = desk.until_parked(&bad).await;
    assert_eq!(last.attempts, TIMES + 1, "its own count");
    assert_eq!(last.headers, first.headers, "headers do not grow");
    assert_eq!(last.body, first.body);
    let acts = desk.backends.ledger.letter_acts(last.letter_id).await.expect("its history");
    let count = |what: &str| acts.iter().filter(|act| act.what == what).count() as u64;
    assert_eq!((count("died"), count("replay")), (TIMES + 1, TIMES));
    assert!(acts.iter().all(|act| act.outcome != "begun"), "nothing was cut short");

    line.ledger.meddle(MEND).await.expect("mended");
    let report = desk.replay(&only(&bad)).await;
    assert_eq!(report.counts.confirmed, 1);
    assert_eq!(state_of(&line, &bad).await, Some(OrderState::Confirmed));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_that_dies_keeps_the_others_parked() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 50);
    line.sell(&shoes).await;
    line.ledger.meddle(BREAK).await.expect("broken");
    let desk = Desk::of(&line);
    let bad = holds(&line, &shoes.item, "bad", 30).await;
    desk.park(&bad).await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let careful = ReplayOptions { canary: Some(3), ..as_fast_as_it_goes() };
    let everything = LetterFilter::default();
    let report = desk.replay_as(&everything, &careful).await;
    assert_eq!(report.stopped, Some(Stopped::Canary));
    assert_eq!((report.sent, report.counts.died_again), (3, 3));
    let parked = LetterFilter { states: vec![LetterState::Parked], ..LetterFilter::default() };
    assert_eq!(desk.backends.ledger.count_letters(&parked).await.expect("a count"), 30);

    line.ledger.meddle(MEND).await.expect("mended");
    let report = desk.replay_as(&everything, &careful).await;
    assert_eq!((report.sent, report.counts.confirmed, report.stopped), (30, 30, None));
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, 30);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_stops_at_a_share_of_failures_and_before_books_that_are_broken() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 50);
    line.sell(&shoes).await;
    let desk = Desk::of(&line);
    let held = holds(&line, &shoes.item, "ann", 5).await;
    desk.park(&held).await;
    // Somebody has meddled with the ledger: it contradicts itself.
    line.ledger.meddle("UPDATE items SET available = available - 7").await.expect("meddled");
    let report = desk.replay(&LetterFilter::default()).await;
    assert!(matches!(report.stopped, Some(Stopped::BrokenLaw { .. })), "{report:?}");
    assert_eq!(report.sent, 0, "nothing was sent");
    line.ledger.meddle("UPDATE items SET available = available + 7").await.expect("mended");

    // Each dies again: one in five would have been too many.
    line.ledger
        .meddle("ALTER TABLE orders ADD CHECK (buyer_id NOT LIKE 'ann%')")
        .await
        .expect("it");
    line.start(Service::Consumer);
    line.start(Service::Reconciler);
    let options = ReplayOptions { stop_at_failures: 0.2, ..as_fast_as_it_goes() };
    let report = desk.replay_as(&LetterFilter::default(), &options).await;
    let expected = Some(Stopped::Failures { failures: 5, ended: 5 });
    assert_eq!(report.stopped, expected, "{report:?}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compensation_that_was_refused_dies_again_until_the_ledger_agrees() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 5);
    line.sell(&shoes).await;
    let desk = Desk::of(&line);
    let sold = hold(&line, &shoes.item, "ann", "key-1").await;
    line.ledger.commit(std::slice::from_ref(&sold)).await.expect("sold");
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    desk.compensate(&sold).await;
    let everything = LetterFilter::default();
    let parked = async || {
        let letters = line.ledger.list_letters(&everything, LetterSort::Newest, None, 9).await;
        letters.expect("the ledger").pop().filter(|letter| letter.state == LetterState::Parked)
    };
    let letter = until("the compensation is parked", parked).await;
    assert_eq!((letter.kind, letter.reason.as_str()), (LetterKind::Compensation, "refused"));
    let plan = desk.plan(&everything).await;
    assert_eq!(plan.by_class.get(&LetterClass::AlreadyConfirmed), Some(&1), "{plan:?}");
    assert_eq!(plan.by_effect.get("dies_again"), Some(&1), "{plan:?}");
    let report = desk.replay(&everything).await;
    assert_eq!(report.sent, 1);
    let again = until("it is parked again", async || parked().await.filter(|l| l.attempts == 2));
    assert_eq!(again.await.letter_id, letter.letter_id);
    assert_eq!(state_of(&line, &sold).await, Some(OrderState::Confirmed), "it stays sold");
    // It does not count as the reservation's own letter: its hold is confirmed all the same.
    let parked = line.ledger.parked(&[sold.reservation_id]).await.expect("the ledger");
    assert!(parked.is_empty());
    line.stop_all().await;
}
