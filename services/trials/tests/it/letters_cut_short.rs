//! Work on dead letters that is cut short between any two steps, and the broker's queue of them gone.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use load::client::Client;
use shared::domain::{LetterState, OrderState};
use shared::ledger::LetterFilter;
use trials::desk::Desk;
use trials::line::{Line, Service, sale};
use trials::messages::{hold, reservation};
use trials::settings::tell_settings;
use trials::stack::{Scratch, own_stack};
use trials::until::until;

use crate::letters::{BREAK, MEND, holds, state_of, until_confirmed};
use crate::numbers::Told;

const LETTERS: usize = 12;

/// An operator as a process of its own, who dies at this point.
fn dies_at(line: &Line, verb: &str, point: &str) {
    let mut operator = Command::new(env!("CARGO_BIN_EXE_trial"));
    tell_settings(&mut operator, &line.config);
    operator.args(["letters", verb]).env("CRASH_AT", point).stderr(Stdio::piped());
    let output = tokio::task::block_in_place(|| operator.output()).expect("a process");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains(&format!("crash point {point}")), "{verb} dies at {point}: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_may_die_at_every_step() {
    for point in ["replay.taken", "replay.published", "replay.marked"] {
        let mut line = Line::new().await;
        let shoes = sale("shoe", LETTERS as u64);
        line.sell(&shoes).await;
        let desk = Desk::of(&line);
        let held = holds(&line, &shoes.item, "ann", LETTERS).await;
        desk.park(&held).await;
        dies_at(&line, "replay", point);
        // What it had in its hands stays its own until the lease has passed.
        line.ledger.meddle("UPDATE dead_letters SET claimed_until = now()").await.expect("lapsed");
        line.start(Service::Consumer);
        line.start(Service::Compensator);
        let report = desk.replay(&LetterFilter::default()).await;
        let left = if point == "replay.marked" { 0 } else { LETTERS as u64 };
        assert_eq!((report.sent, report.stopped), (left, None), "{point}");
        for held in &held {
            until_confirmed(&line, held).await;
            let letter = desk.letter_of(held).await.expect("a letter");
            assert_eq!(letter.state, LetterState::Replayed, "{point}");
        }
        let books = line.assert_law(&shoes.item).await;
        assert_eq!(books.confirmed_units, LETTERS as u64, "{point}: every order once");
        line.stop_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discard_may_die_at_every_step() {
    for point in ["discard.begun", "discard.expired", "discard.restored"] {
        let line = Line::new().await;
        let shoes = sale("shoe", LETTERS as u64);
        line.sell(&shoes).await;
        let desk = Desk::of(&line);
        let held = holds(&line, &shoes.item, "ann", LETTERS).await;
        desk.park(&held).await;
        dies_at(&line, "discard", point);
        line.ledger.meddle("UPDATE dead_letters SET claimed_until = now()").await.expect("lapsed");
        let report = desk.discard(&LetterFilter::default(), "another").await;
        assert_eq!(report.discarded, LETTERS as u64, "{point}");
        for held in &held {
            let state = state_of(&line, held).await;
            let first = OrderState::Expired("trial".parse().expect("a reason"));
            assert_eq!(state, Some(first), "{point}: the first reason stands");
            let letter = desk.letter_of(held).await.expect("a letter");
            assert_eq!(letter.state, LetterState::Discarded, "{point}");
        }
        let books = line.assert_law(&shoes.item).await;
        assert_eq!((books.confirmed_units, books.redis_available), (0, Some(LETTERS as u64)));
        line.stop_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_operator_has_in_hand_no_other_sends() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 40);
    line.sell(&shoes).await;
    let (desk, other) = (Desk::of(&line), Desk::of(&line));
    let held = holds(&line, &shoes.item, "ann", 40).await;
    desk.park(&held).await;
    line.start(Service::Consumer);
    let everything = LetterFilter::default();
    let (one, two) = tokio::join!(desk.replay(&everything), other.replay(&everything));
    assert_eq!(one.sent + two.sent, 40, "each letter once: {one:?} {two:?}");
    let acts =
        "SELECT letter_id FROM letter_acts WHERE what = 'replay' GROUP BY 1 HAVING count(*) > 1";
    let nobody_twice = format!("DO $$ BEGIN ASSERT NOT EXISTS ({acts}); END $$");
    line.ledger.meddle(&nobody_twice).await.expect("each was taken once");
    line.assert_law(&shoes.item).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_dead_letters_that_is_deleted_or_unbound_loses_none() {
    const BAD: usize = 15;
    let stack = own_stack();
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.hurry(Duration::from_secs(1));
    let shoes = sale("shoe", 100);
    line.sell(&shoes).await;
    line.ledger.meddle(BREAK).await.expect("broken");
    let desk = Arc::new(Desk::of(&line));
    for service in [Service::Consumer, Service::Compensator, Service::Reconciler] {
        line.start(service);
    }
    let namespace = line.config.namespace.to_string();
    let of_dead = |kind: &str, action: &str| {
        format!("R = rabbit_misc:r(<<\"/\">>, {kind}, <<\"{namespace}.dead\">>), {action}.")
    };
    let unbind = of_dead(
        "exchange",
        "[rabbit_binding:remove(B, <<\"trial\">>) || B <- rabbit_binding:list_for_source(R)]",
    );
    let delete_exchange = of_dead("exchange", "rabbit_exchange:delete(R, false, <<\"trial\">>)");
    let queue = format!("{namespace}.dead");
    let mut bad = Vec::new();
    for number in 0..BAD {
        let damage = match number % 3 {
            0 => vec!["delete_queue", &queue],
            1 => vec!["eval", &unbind],
            _ => vec!["eval", &delete_exchange],
        };
        let rabbitmq = &stack.backend.rabbitmq;
        let one = hold(&line, &shoes.item, &format!("bad-{number}"), "key-1").await;
        // Gone before it fails, or while it does. In a task of its own: the damage keeps this one
        // from being polled, and calls to the ledger have their time limits.
        let (operator, message) = (Arc::clone(&desk), one.clone());
        let publishing = tokio::spawn(async move { operator.publish(&message).await });
        // A queue that is just being declared again is not there for a moment.
        let _ = tokio::task::block_in_place(|| rabbitmq.ctl(&damage));
        publishing.await.expect("no panic");
        bad.push(one);
        // So that the consumer does not take itself for the culprit.
        let good = hold(&line, &shoes.item, &format!("good-{number}"), "key-1").await;
        desk.publish(&good).await;
        until_confirmed(&line, &good).await;
    }
    for one in &bad {
        desk.until_parked(one).await;
        assert_eq!(state_of(&line, one).await, None);
    }
    assert_eq!(line.snapshot(&shoes.item).await.held, BAD as u64, "their stock is kept for them");
    line.ledger.meddle(MEND).await.expect("mended");
    // Copies that the reconciler published meanwhile may have made the first one stop.
    line.start(Service::Consumer);
    // A copy that was published twice may die once more after the first replay.
    until("nothing is held", async || {
        let report = desk.replay(&LetterFilter::default()).await;
        assert_eq!(report.stopped, None, "{report:?}");
        (line.snapshot(&shoes.item).await.held == 0).then_some(())
    })
    .await;
    for one in &bad {
        assert_eq!(state_of(&line, one).await, Some(OrderState::Confirmed));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_takes_no_dead_letters_is_told_loudly_until_it_does() {
    let stack = own_stack();
    let line = Line::on(stack.backend.endpoints()).await;
    let shoes = sale("shoe", 10);
    line.sell(&shoes).await;
    let scratch = Scratch::create();
    let consumer = Told::start(Service::Consumer, scratch.path(), &line.config);
    let ready = async || Client::new(consumer.address).get("/readyz").await.ok();
    until("the consumer is at work", async || ready().await.filter(|page| page.status == 200))
        .await;

    // Of another kind and bound to nothing: it can neither be used nor declared again.
    let exchange =
        format!("rabbit_misc:r(<<\"/\">>, exchange, <<\"{}.dead\">>)", line.config.namespace);
    let delete = format!("rabbit_exchange:delete({exchange}, false, <<\"trial\">>).");
    let spoil = format!(
        "rabbit_exchange:delete({exchange}, false, <<\"trial\">>),
         rabbit_exchange:declare({exchange}, fanout, true, false, false, [], <<\"trial\">>)."
    );
    let ctl = |what: &str| {
        tokio::task::block_in_place(|| stack.backend.rabbitmq.ctl(&["eval", what])).expect("obeyed")
    };
    let desk = Desk::of(&line);
    let ghost = reservation(&"ghost".parse().expect("an item"), "ann", "key-1", 1);
    ctl(&spoil);
    desk.publish(&ghost).await;
    let page = until("it says so", async || ready().await.filter(|page| page.status == 503)).await;
    let said = String::from_utf8(page.body.to_vec()).expect("text");
    assert!(said.contains("dead_letters") && said.contains("does not take"), "{said}");
    let numbers = consumer.numbers().await.expect("its numbers");
    let refused = |outcome| {
        let name = format!("lastunit_dead_letters_not_taken_total{{outcome=\"{outcome}\"}}");
        numbers.get(&name).copied().unwrap_or(0.0)
    };
    assert!(refused("unroutable") + refused("unknown") + refused("not_sent") > 0.0, "{numbers:?}");

    ctl(&delete);
    until("it is at work again", async || ready().await.filter(|page| page.status == 200)).await;
    let mut line = line;
    line.start(Service::Reconciler);
    desk.until_parked(&ghost).await;
    line.stop_all().await;
}
