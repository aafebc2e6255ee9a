//! Dead letters that nobody wants any more: their stock goes back, once, and nothing is sold of them.

use shared::domain::{LetterClass, LetterState, OrderState};
use shared::ledger::LetterFilter;
use trials::desk::{Desk, as_fast_as_it_goes, only};
use trials::line::{Line, Service, sale};
use trials::messages::hold;
use trials::until::until;

use crate::letters::{holds, state_of, until_confirmed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discarded_unit_is_sold_to_somebody_else_and_never_twice() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 1);
    line.sell(&shoes).await;
    let desk = Desk::of(&line);
    let first = hold(&line, &shoes.item, "ann", "key-1").await;
    desk.park(std::slice::from_ref(&first)).await;
    let report = desk.discard(&only(&first), "wrong_price").await;
    assert_eq!((report.discarded, report.ends["restored"]), (1, 1));
    assert_eq!(line.available(&shoes.item).await, 1, "the unit went back");
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let second = hold(&line, &shoes.item, "bob", "key-1").await;
    desk.publish(&second).await;
    until_confirmed(&line, &second).await;

    // An old copy turns up, and dies once more on its way.
    let plan = desk.plan(&only(&first)).await;
    assert_eq!(plan.by_effect.get("expired:wrong_price"), Some(&1), "{plan:?}");
    assert_eq!(plan.by_class.get(&LetterClass::HoldRestored), Some(&1), "{plan:?}");
    let of_item = plan.items[&shoes.item];
    assert_eq!((of_item.units_sold, of_item.units_back, of_item.new_orders), (0, 0, 0));
    desk.park(std::slice::from_ref(&first)).await;
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
    let desk = Desk::of(&line);
    let held = holds(&line, &shoes.item, "ann", 2).await;
    desk.park(&held).await;
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
    let desk = Desk::of(&line);
    let held = holds(&line, &shoes.item, "ann", 2).await;
    desk.park(&held).await;
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
    let desk = Desk::of(&line);
    let of_shoes = hold(&line, &shoes.item, "ann", "key-1").await;
    let of_hats = hold(&line, &hats.item, "ann", "key-1").await;
    desk.park(&[of_shoes.clone(), of_hats.clone()]).await;
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
    let desk = Desk::of(&line);
    let held = holds(&line, &shoes.item, "ann", 3).await;
    desk.park(&held).await;
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
