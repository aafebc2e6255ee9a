//! Dead letters: whatever an operator does with them, every order is there once and no unit is
//! sold twice.

use shared::domain::{ItemId, LetterClass, LetterState, OrderState, Reservation};
use shared::ledger::LetterFilter;
use trials::desk::{Desk, as_fast_as_it_goes, only};
use trials::line::{Line, Service, sale};
use trials::messages::{Post, hold, reservation};
use trials::until::until;

use reconciler::letters::{ReplayOptions, Stopped};

/// Nobody called `bad` can buy, until the ledger is mended.
const BREAK: &str = "ALTER TABLE orders ADD CONSTRAINT no_bad CHECK (buyer_id NOT LIKE 'bad%')";
const MEND: &str = "ALTER TABLE orders DROP CONSTRAINT no_bad";

async fn state_of(line: &Line, reservation: &Reservation) -> Option<OrderState> {
    let order = line.ledger.find_order(reservation.request_id).await.expect("the ledger");
    order.map(|order| order.state)
}

async fn until_confirmed(line: &Line, reservation: &Reservation) {
    until("the order is confirmed", async || {
        (state_of(line, reservation).await == Some(OrderState::Confirmed)).then_some(())
    })
    .await;
}

/// Takes stock of buyers, one unit each, as if ingress had died then.
async fn holds(line: &Line, item: &ItemId, name: &str, count: usize) -> Vec<Reservation> {
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
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    drop(post);
    let bad = hold(&line, &shoes.item, "bad", "key-1").await;
    let publisher = Desk::of(&line);
    publish(&publisher, &bad).await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let letter = desk.until_parked(&bad).await;
    assert_eq!((letter.reason.as_str(), letter.attempts), ("hopeless", 1));

    // Everybody else buys all that is left.
    for other in holds(&line, &shoes.item, "good", 2).await {
        publish(&publisher, &other).await;
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

/// Publishes a reservation as ingress does.
async fn publish(desk: &Desk, reservation: &Reservation) {
    use shared::contract::ReservationsPlaced;
    use shared::domain::partition;
    use shared::queue::Outgoing;
    let environment = desk.backends.ledger.environment().await.expect("an environment");
    let reservations = vec![reservation.clone()];
    let placed = ReservationsPlaced { environment, reservations };
    let partition = partition(&reservation.item, desk.config.rabbitmq.partitions);
    let message = Outgoing::reservations(partition, &placed);
    let never = tokio_util::sync::CancellationToken::new();
    desk.backends.publisher.publish_all(vec![message], &never).await.expect("published");
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
    publish(&desk, &bad).await;
    let first = desk.until_parked(&bad).await;
    for turn in 0..TIMES {
        let report = desk.replay(&only(&bad)).await;
        assert_eq!((report.sent, report.counts.died_again), (1, 1), "{turn}: {report:?}");
        if turn % 10 == 0 {
            // A consumer that parks twenty in a row stops.
            let good = reservation(&shoes.item, &format!("good-{turn}"), "key-1", 1);
            publish(&desk, &good).await;
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
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let bad = holds(&line, &shoes.item, "bad", 30).await;
    desk.park(&post, &bad).await;
    drop(post);
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
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let held = holds(&line, &shoes.item, "ann", 5).await;
    desk.park(&post, &held).await;
    drop(post);
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
    assert_eq!(report.stopped, Some(Stopped::Failures { failures: 5, ended: 5 }));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discarded_unit_is_sold_to_somebody_else_and_never_twice() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 1);
    line.sell(&shoes).await;
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let first = hold(&line, &shoes.item, "ann", "key-1").await;
    desk.park(&post, std::slice::from_ref(&first)).await;
    drop(post);
    let report = desk.discard(&only(&first), "wrong_price").await;
    assert_eq!((report.discarded, report.ends["restored"]), (1, 1));
    assert_eq!(line.available(&shoes.item).await, 1, "the unit went back");
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let second = hold(&line, &shoes.item, "bob", "key-1").await;
    publish(&desk, &second).await;
    until_confirmed(&line, &second).await;

    // An old copy turns up, and dies once more on its way.
    let plan = desk.plan(&only(&first)).await;
    assert_eq!(plan.by_effect.get("expired:wrong_price"), Some(&1), "{plan:?}");
    assert_eq!(plan.by_class.get(&LetterClass::HoldRestored), Some(&1), "{plan:?}");
    let of_item = plan.items[&shoes.item];
    assert_eq!((of_item.units_sold, of_item.units_back, of_item.new_orders), (0, 0, 0));
    let post = Post::of(&line).await;
    desk.park(&post, std::slice::from_ref(&first)).await;
    let report = desk.replay(&only(&first)).await;
    assert_eq!((report.sent, report.counts.repeated, report.counts.confirmed), (1, 1, 0));
    let wrong_price = OrderState::Expired("wrong_price".parse().expect("a reason"));
    assert_eq!(state_of(&line, &first).await, Some(wrong_price));
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_ledger_has_sold_is_not_given_back_by_a_discard() {
    let line = Line::new().await;
    let shoes = sale("shoe", 3);
    line.sell(&shoes).await;
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let held = holds(&line, &shoes.item, "ann", 2).await;
    desk.park(&post, &held).await;
    line.ledger.commit(&held[..1]).await.expect("sold meanwhile");
    let report = desk.discard(&LetterFilter::default(), "why_not").await;
    assert_eq!((report.ends["sold"], report.ends["restored"]), (1, 1), "{report:?}");
    assert_eq!(state_of(&line, &held[0]).await, Some(OrderState::Confirmed));
    let redis = line.snapshot(&shoes.item).await;
    assert_eq!((redis.available, redis.held), (2, 1), "the sold one is the reconciler's");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reconciler_finishes_a_discard_that_was_cut_short() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 3);
    line.sell(&shoes).await;
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let held = holds(&line, &shoes.item, "ann", 2).await;
    desk.park(&post, &held).await;
    drop(post);
    // Somebody began, wrote the first tombstone, and died; long ago.
    let ledger = &desk.backends.ledger;
    let run = ledger.begin_letter_run("somebody").await.expect("a run");
    let ids: Vec<_> = held.iter().map(|held| held.reservation_id.as_uuid()).collect();
    let reason = "wrong_price".parse().expect("a reason");
    ledger.begin_discard(&run, &reason, &ids).await.expect("begun");
    let everything = LetterFilter::default();
    line.ledger.meddle("UPDATE dead_letters SET claimed_until = now()").await.expect("lapsed");
    let report = desk.replay_as(&everything, &as_fast_as_it_goes()).await;
    assert_eq!(report.sent, 0, "what is being discarded is not sent");

    line.start(Service::Reconciler);
    until("both are discarded", async || {
        let letter = desk.letter_of(&held[1]).await.expect("a letter");
        (letter.state == LetterState::Discarded).then_some(())
    })
    .await;
    for held in &held {
        let state = state_of(&line, held).await;
        assert_eq!(state, Some(OrderState::Expired("wrong_price".parse().expect("a reason"))));
    }
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.redis_available, Some(3));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patience_discards_parked_reservations_only_after_their_sale() {
    let mut line = Line::new().await;
    let (shoes, hats) = (sale("shoe", 3), sale("hat", 3));
    line.sell(&shoes).await;
    line.sell(&hats).await;
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let of_shoes = hold(&line, &shoes.item, "ann", "key-1").await;
    let of_hats = hold(&line, &hats.item, "ann", "key-1").await;
    desk.park(&post, &[of_shoes.clone(), of_hats.clone()]).await;
    drop(post);
    // An hour ago the sale of shoes was over and the letters died.
    line.ledger
        .meddle(
            "UPDATE dead_letters SET last_died_at = now() - interval '1 hour';
             UPDATE items SET closes_at = now() - interval '1 hour' WHERE item_id = 'shoe'",
        )
        .await
        .expect("an hour later");
    let mut config = line.config.clone();
    config.dead_letters.patience_s = 60;
    line.start_with(Service::Reconciler, config);
    until("the letter of the closed sale is discarded", async || {
        let letter = desk.letter_of(&of_shoes).await.expect("a letter");
        (letter.state == LetterState::Discarded).then_some(())
    })
    .await;
    let reason = "out_of_patience".parse().expect("a reason");
    assert_eq!(state_of(&line, &of_shoes).await, Some(OrderState::Expired(reason)));
    let other = desk.letter_of(&of_hats).await.expect("a letter");
    assert_eq!(other.state, LetterState::Parked, "its sale goes on");
    assert_eq!(line.snapshot(&hats.item).await.held, 1);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settled_letters_are_forgotten_in_time_and_parked_ones_never() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 3);
    line.sell(&shoes).await;
    let (post, desk) = (Post::of(&line).await, Desk::of(&line));
    let held = holds(&line, &shoes.item, "ann", 3).await;
    desk.park(&post, &held).await;
    drop(post);
    desk.discard(&only(&held[0]), "old").await;
    desk.discard(&only(&held[1]), "young").await;
    let old = held[0].reservation_id;
    line.ledger
        .meddle(&format!(
            "UPDATE dead_letters SET last_died_at = now() - interval '400 days';
             UPDATE dead_letters SET settled_at = now() - interval '91 days'
             WHERE letter_id = '{old}'"
        ))
        .await
        .expect("much later");
    line.start(Service::Reconciler);
    until("the old one is forgotten", async || {
        desk.letter_of(&held[0]).await.is_none().then_some(())
    })
    .await;
    for kept in &held[1..] {
        assert!(desk.letter_of(kept).await.is_some());
    }
    line.stop_all().await;
}
