//! Buyers who meet a freeze: a short one is waited for, a long one is told.

use std::time::{Duration, Instant};

use shared::config::limits::FROZEN_WAIT;
use shared::domain::ItemId;
use shared::stock::{Freeze, FreezeReply};
use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::until::until;
use uuid::Uuid;

use super::only_bucket;

const LONG: Duration = Duration::from_secs(60);

/// As long as a slow correction takes, and well within what ingress waits for.
const SHORT: Duration = Duration::from_millis(100);

/// So many that they go to Redis in a dozen calls.
const CROWD: usize = 1_500;

async fn freeze(line: &Line, item: &ItemId, lease: Duration) -> Freeze {
    let freeze = Freeze { fence: 1_000, token: Uuid::new_v4() };
    let reply = line.stock.freeze(&only_bucket(item), freeze, lease).await.expect("Redis");
    assert_eq!(reply, FreezeReply::Frozen);
    freeze
}

async fn thaw(line: &Line, item: &ItemId, freeze: Freeze) {
    let reply = line.stock.thaw(&only_bucket(item), freeze).await.expect("Redis");
    assert_eq!(reply, FreezeReply::Thawed);
}

/// Tells Redis the terms that the ledger has now.
async fn tell(line: &Line, item: &ItemId) {
    assert!(reconciler::tell_terms(&line.ledger, &line.stock, item).await.expect("told"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_freeze_is_waited_for() {
    let shoes = sale("shoe", 10_000);
    let (line, address) = Line::selling(&shoes).await;
    let mut buyers = Vec::new();
    for number in 0..20 {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        buyer.client.connect().await.expect("a connection");
        buyers.push(buyer);
    }
    for round in 0..5 {
        // The end is by Redis' clock, however slow this test is; it goes to Redis before the buyers.
        freeze(&line, &shoes.item, SHORT).await;
        let answers = at_once(buyers.drain(..).map(|mut buyer| async move {
            let answer = buyer.buy("shoe", &format!("key-{round}"), 1).await;
            (buyer, answer)
        }))
        .await;
        for (buyer, answer) in answers {
            assert_eq!(answer.status, 202, "{answer:?}");
            buyers.push(buyer);
        }
    }
    line.assert_law(&shoes.item).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_freeze_is_told_soon_however_many_queue_up_behind_it() {
    let shoes = sale("shoe", 10_000);
    let (line, address) = Line::selling(&shoes).await;
    let mut buyers = Vec::new();
    for number in 0..CROWD {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        buyer.client.connect().await.expect("a connection");
        buyers.push(buyer);
    }
    let freeze = freeze(&line, &shoes.item, LONG).await;
    let answers = at_once(buyers.into_iter().map(|mut buyer| async move {
        let asked = Instant::now();
        let answer = buyer.buy("shoe", "key-1", 1).await;
        (answer, asked.elapsed())
    }))
    .await;
    for (answer, _) in &answers {
        answer.assert_problem(503, "frozen", None);
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let longest = answers.iter().map(|(_, waited)| *waited).max().expect("answers");
    // One after the other they would wait for a dozen times 0.2 s.
    assert!(longest < Duration::from_millis(1_500), "{longest:?}");
    let redis = line.snapshot(&shoes.item).await;
    assert_eq!((redis.available, redis.held), (10_000, 0), "nothing was taken");
    thaw(&line, &shoes.item, freeze).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_freeze_is_waited_for_although_an_earlier_one_was_long() {
    let shoes = sale("shoe", 10);
    let (line, address) = Line::selling(&shoes).await;
    let mut ann = Buyer::new(address, "ann");
    let long = freeze(&line, &shoes.item, LONG).await;
    ann.buy("shoe", "key-1", 1).await.assert_problem(503, "frozen", None);
    thaw(&line, &shoes.item, long).await;
    let thawed = Instant::now();
    until("nobody has bought for longer than ingress lets anybody wait", async || {
        (thawed.elapsed() > FROZEN_WAIT * 2).then_some(())
    })
    .await;
    freeze(&line, &shoes.item, SHORT).await;
    let answer = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_bought_is_answered_while_the_item_stands_still_and_other_items_do_not_notice() {
    let (shoes, hats) = (limited("shoe", 10, 3), sale("hat", 10));
    let mut line = Line::new().await;
    line.sell(&shoes).await;
    line.sell(&hats).await;
    let address = line.ingress().await;
    let (mut ann, mut bob) = (Buyer::new(address, "ann"), Buyer::new(address, "bob"));
    let held = ann.buy("shoe", "held", 1).await;
    assert_eq!(held.status, 202);

    let first = freeze(&line, &shoes.item, LONG).await;
    let again = ann.buy("shoe", "held", 1).await;
    assert_eq!((again.status, again.is_replayed()), (202, true), "{again:?}");
    thaw(&line, &shoes.item, first).await;
    line.start(Service::Consumer);
    assert_eq!(ann.final_state(&held).await, "confirmed");

    let second = freeze(&line, &shoes.item, LONG).await;
    let is_confirmed =
        |answer: &Answer| answer.status == 200 && answer.text("status") == "confirmed";
    // Together with somebody who has to wait.
    let waiting = tokio::spawn(async move { bob.buy("shoe", "key-1", 1).await });
    let again = ann.buy("shoe", "held", 1).await;
    assert!(is_confirmed(&again) && again.is_replayed(), "{again:?}");
    ann.buy("shoe", "new", 1).await.assert_problem(503, "frozen", None);
    waiting.await.expect("no panic").assert_problem(503, "frozen", None);
    let other = ann.buy("hat", "key-1", 1).await;
    assert_eq!(other.status, 202, "{other:?}");
    thaw(&line, &shoes.item, second).await;

    let pause = Uuid::new_v4();
    line.ledger.pause(&shoes.item, pause, "a trial").await.expect("paused");
    tell(&line, &shoes.item).await;
    let again = ann.buy("shoe", "held", 1).await;
    assert!(is_confirmed(&again) && again.is_replayed(), "{again:?}");
    ann.buy("shoe", "new", 1).await.assert_problem(503, "paused", None);
    let other = ann.buy("hat", "key-2", 1).await;
    assert_eq!(other.status, 202, "{other:?}");
    line.ledger.resume(&shoes.item, pause).await.expect("resumed");
    tell(&line, &shoes.item).await;
    assert_eq!(ann.buy("shoe", "new", 1).await.status, 202);
    line.assert_law(&shoes.item).await;
    line.stop_all().await;
}
