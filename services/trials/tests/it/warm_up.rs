//! Warm-up: by whom and how often it is done, and wherever it dies, an item opens once.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use reconciler::{WarmError, Warmed, warm};
use shared::config::limits::WARM_PAGE;
use shared::domain::{BucketCount, BucketState};
use trials::buyer::Buyer;
use trials::line::{Line, Service, limited, sale};
use trials::processes::{Manning, Process};
use trials::stack::Scratch;
use trials::throng::Throng;
use trials::until::{PATIENCE, until};

const SOON: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warming_up_a_live_item_in_mid_sale_changes_nothing() {
    const UNITS: u64 = 300;
    let shoes = sale("shoe", UNITS);
    let (mut line, address) = Line::selling(&shoes).await;
    line.start(Service::Reconciler);
    let before = line.snapshot(&shoes.item).await;
    let throng = Throng::begin(address, "shoe");
    for _ in 0..3 {
        throng.until_more(PATIENCE).await;
        let warming = (0..4).map(|_| warm(&line.ledger, &line.stock, &shoes.item));
        for warmed in join_all(warming).await {
            let warmed = warmed.expect("a warm-up");
            assert!(matches!(warmed, Warmed::Live { epoch: 1, .. }), "{warmed:?}");
        }
    }
    throng.until_told("sold_out").await;
    assert_eq!(throng.problems(), ["sold_out"]);
    let ends = throng.end().await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((ends.confirmed, ends.rejected, books.confirmed_units), (UNITS, 0, UNITS));
    let after = line.snapshot(&shoes.item).await;
    assert_eq!((after.epoch, after.fence), (before.epoch, before.fence), "not even a lock");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_buyer_of_an_item_is_known_after_a_warm_up_however_many_pages_their_orders_fill() {
    const ORDERS: usize = 2 * WARM_PAGE + 1;
    let shoes = limited("shoe", 2 * ORDERS as u64, 1);
    let mut line = Line::new().await;
    let buckets = BucketCount::new(3).expect("so many");
    line.ledger.put_item(&shoes, Some(buckets)).await.expect("put");
    let sold = format!(
        "INSERT INTO orders (request_id, reservation_id, item_id, buyer_id, quantity, state, epoch,
                             reserved_at)
         SELECT gen_random_uuid(), gen_random_uuid(), 'shoe', 'buyer-' || lpad(number::text, 5, '0'),
                1, 'confirmed', 0, now()
         FROM generate_series(1, {ORDERS}) AS number;
         UPDATE items SET available = available - {ORDERS};"
    );
    line.ledger.meddle(&sold).await.expect("sold");
    line.warm(&shoes.item).await;
    let address = line.ingress().await;
    // The first and the last of each page.
    for number in [1, WARM_PAGE, WARM_PAGE + 1, 2 * WARM_PAGE, ORDERS] {
        let mut buyer = Buyer::new(address, format!("buyer-{number:05}"));
        let answer = buyer.buy_patiently("shoe", "another-key", 1).await;
        answer.assert_problem(409, "limit_reached", None);
    }
    let mut stranger = Buyer::new(address, format!("buyer-{:05}", ORDERS + 1));
    assert_eq!(stranger.buy_patiently("shoe", "key-1", 1).await.status, 202);
    line.stop_all().await;
}

/// Warm-ups of a cold item, all at once and each with a window of its own: one state opens.
async fn at_once_on_a_cold_item(line: &Line, item: &str, many: usize) {
    let shoes = sale(item, 10);
    line.put(&shoes).await;
    let others: Vec<_> = (0..many).map(|_| Line::of(line.config.clone())).collect();
    for other in &others {
        until("its window is open", async || other.stock.store().await.ok()).await;
    }
    let warmed =
        join_all(others.iter().map(|one| warm(&one.ledger, &one.stock, &shoes.item))).await;
    let built = |one: &&Result<Warmed, WarmError>| matches!(one, Ok(Warmed::Built { .. }));
    assert_eq!(warmed.iter().filter(built).count(), 1, "{item}: {warmed:?}");
    for one in &warmed {
        let fits = matches!(
            one,
            Ok(Warmed::Built { epoch: 1, available: 10, .. } | Warmed::Live { epoch: 1, .. })
                | Err(WarmError::Overtaken { .. })
        );
        assert!(fits, "{item}: {one:?}");
    }
    let (seen, books) = (line.snapshot(&shoes.item).await, line.assert_law(&shoes.item).await);
    assert_eq!((seen.epoch, seen.standings[0].state), (1, BucketState::Open));
    assert_eq!(books.redis_available, Some(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_warm_ups_at_once_one_opens_the_item() {
    let line = Line::new().await;
    reconciler::bind_first(&line.config, &line.ledger, &line.stock).await.expect("bound");
    for turn in 0..5 {
        at_once_on_a_cold_item(&line, &format!("two-{turn}"), 2).await;
        at_once_on_a_cold_item(&line, &format!("four-{turn}"), 4).await;
    }
}

/// A warm-up dies here, in a process of its own; what it has begun is for the next one.
async fn dies_at(point: &'static str) {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 5);
    line.put(&shoes).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    let mut ann = Buyer::new(address, "ann");
    ann.buy("shoe", "key-1", 1).await.assert_problem(503, "not_warm", None);

    let scratch = Scratch::create();
    let program = Path::new(env!("CARGO_BIN_EXE_trial"));
    let manning = Manning { program, dir: scratch.path(), first_look: SOON, config: &line.config };
    let victim = Process::alone(Service::Reconciler, manning).await;
    victim.does(move |victim| victim.start(Some(point.to_owned()))).await;
    victim.until_dead().await;
    ann.buy("shoe", "key-1", 1).await.assert_problem(503, "not_warm", None);
    victim.does(|victim| victim.start(None)).await;

    let accepted = until("it is on sale", async || {
        let answer = ann.buy("shoe", "key-1", 1).await;
        if answer.status == 503 {
            answer.assert_problem(503, "not_warm", None);
            return None;
        }
        Some(answer)
    })
    .await;
    assert_eq!((accepted.status, ann.final_state(&accepted).await), (202, "confirmed".into()));
    // What was complete is only opened; what was not is built anew.
    let epoch = line.snapshot(&shoes.item).await.epoch;
    assert_eq!(epoch, if point == "warm.built" { 1 } else { 2 }, "died at {point}");
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(4)));
    victim.does(|victim| victim.stop()).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_up_may_die_at_every_step_and_another_opens_the_item() {
    // Side by side: each waits until the lock of the dead one is free.
    tokio::join!(dies_at("warm.begun"), dies_at("warm.building"), dies_at("warm.built"));
}
