//! One ledger, one namespace, one Redis: what does not belong to them is kept out, and a Redis that
//! is lost makes room for the next.

use std::time::{Duration, Instant};

use reconciler::{NotBound, bind_first};
use shared::config::limits::{STORE_SEEN_EVERY, STORE_UNSEEN};
use shared::domain::StoreId;
use shared::ledger::BindOutcome;
use trials::buyer::Buyer;
use trials::line::{Line, Service, sale};
use trials::messages::hold;
use trials::stack::{command, own_redis};
use trials::until::{until, within};

/// A new store is bound when the old one was unseen for long, and noticed a little later.
const BOUND_WITHIN: Duration = Duration::from_secs(30);

/// What Redis says it is.
async fn store(line: &Line) -> Option<StoreId> {
    until("Redis answers", async || line.stock.store().await.ok()).await
}

/// What the ledger names, and for how long nobody has seen it.
async fn named(line: &Line) -> Option<(StoreId, Duration)> {
    let binding = line.ledger.binding().await.expect("the ledger");
    binding.store.map(|bound| (bound.store, bound.unseen_for))
}

/// Waits until both name the same store, and a reconciler has seen it from now on.
async fn until_seen(line: &Line) -> StoreId {
    line.forget_store().await;
    until("the store is seen", async || {
        let (store_named, unseen) = named(line).await?;
        let same = store(line).await == Some(store_named);
        (same && unseen < STORE_SEEN_EVERY).then_some(store_named)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_redis_for_a_ledger_whose_store_is_seen_is_refused_and_harms_nobody() {
    let shoes = sale("shoe", 5);
    let (mut ours, address) = Line::selling(&shoes).await;
    ours.start(Service::Reconciler);
    let before = until_seen(&ours).await;

    let empty = own_redis();
    let mut theirs = Line::of(ours.config.clone());
    theirs.move_to_redis(&empty.backend.url());
    let their_address = theirs.start_ingress(theirs.config.clone());
    for service in [Service::Consumer, Service::Compensator, Service::Reconciler] {
        theirs.start(service);
    }
    let mut bob = Buyer::new(their_address, "bob");
    let told = until("it answers", async || bob.try_get("/readyz").await.ok()).await;
    assert_eq!(told.status, 503, "{told:?}");
    bob.buy("shoe", "key-1", 1).await.assert_problem(503, "not_ready", None);
    let alone = bind_first(&theirs.config, &theirs.ledger, &theirs.stock).await;
    assert!(matches!(alone, Err(NotBound::Unclear(_))), "{alone:?}");

    let services = [Service::Ingress, Service::Consumer, Service::Compensator, Service::Reconciler];
    for service in services {
        let refused = theirs.until_ended(service).await.expect_err("refused");
        for word in ["sees store", &before.to_string(), &theirs.config.redis.url.address()] {
            assert!(refused.contains(word), "{service:?}: no {word} in {refused}");
        }
    }
    assert_eq!(store(&theirs).await, None, "nothing was written there");
    assert_eq!(until_seen(&ours).await, before);
    let mut ann = Buyer::new(address, "ann");
    let accepted = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    assert_eq!(ours.assert_law(&shoes.item).await.confirmed_units, 1);
    ours.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_lost_makes_room_for_the_next_and_nobody_has_to_be_started_again() {
    let redis = own_redis();
    let shoes = sale("shoe", 5);
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.sell(&shoes).await;
    let address = line.ingress().await;
    let services =
        [Service::Consumer, Service::Compensator, Service::Reconciler, Service::Reconciler];
    services.into_iter().for_each(|service| line.start(service));
    let mut ann = Buyer::new(address, "ann");
    let accepted = ann.buy("shoe", "before", 1).await;
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    let before = until_seen(&line).await;

    command(&redis.backend, "FLUSHALL");
    let lost = Instant::now();
    // Who comes now can neither bind nor warm up, and waits.
    let alone = bind_first(&line.config, &line.ledger, &line.stock).await;
    assert!(matches!(alone, Err(NotBound::Unclear(_))), "{alone:?}");
    let late_address = line.start_ingress(line.config.clone());
    line.start(Service::Consumer);
    assert_eq!(store(&line).await, None);
    assert_eq!(named(&line).await.expect("a store").0, before);
    ann.buy("shoe", "meanwhile", 1).await.assert_problem(503, "not_warm", None);

    let next = within(BOUND_WITHIN, "another store is bound", async || {
        let next = store(&line).await?;
        named(&line).await.filter(|(named, _)| *named == next).map(|_| next)
    })
    .await;
    assert_ne!(next, before);
    let soonest = STORE_UNSEEN - STORE_SEEN_EVERY - Duration::from_secs(1);
    assert!(lost.elapsed() > soonest, "{:?}", lost.elapsed());

    line.warm(&shoes.item).await;
    trials::line::until_ready(late_address).await;
    let mut bob = Buyer::new(late_address, "bob");
    for buyer in [&mut ann, &mut bob] {
        let accepted = buyer.buy("shoe", "after", 1).await;
        assert_eq!(buyer.final_state(&accepted).await, "confirmed");
    }
    assert_eq!(until_seen(&line).await, next, "one of two reconcilers has bound it");
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (3, Some(2)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_between_the_ledger_and_redis_costs_a_wait_and_nothing_else() {
    let mut line = Line::new().await;
    let half = StoreId::mint();
    let bound = line.ledger.bind_store(&line.config.namespace, half, None).await;
    assert_eq!(bound.expect("the ledger"), BindOutcome::Bound);
    let early = bind_first(&line.config, &line.ledger, &line.stock).await;
    assert!(matches!(early, Err(NotBound::Unclear(_))), "{early:?}");
    line.forget_store().await;
    let late = bind_first(&line.config, &line.ledger, &line.stock).await;
    assert!(matches!(late, Err(NotBound::Lost { .. })), "{late:?}");
    line.start(Service::Reconciler);
    assert_ne!(until_seen(&line).await, half);
    line.sell(&sale("shoe", 5)).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_and_reconcilers_that_bind_at_once_agree_on_one_store() {
    let mut line = Line::new().await;
    line.start(Service::Reconciler);
    line.start(Service::Reconciler);
    let bind = || async {
        until("it is bound", async || {
            bind_first(&line.config, &line.ledger, &line.stock).await.ok()
        })
        .await;
        store(&line).await
    };
    let (one, other) = tokio::join!(bind(), bind());
    assert_eq!((one, one), (other, Some(until_seen(&line).await)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_foreign_redis_holds_is_left_alone_until_the_right_one_is_back() {
    const NOTICED: Duration = STORE_SEEN_EVERY.saturating_add(Duration::from_secs(2));
    let redis = own_redis();
    let shoes = sale("shoe", 5);
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.hurry(Duration::from_millis(200));
    line.sell(&shoes).await;
    line.start(Service::Consumer);
    line.start(Service::Reconciler);
    hold(&line, &shoes.item, "ghost", "key-1").await;
    assert_eq!(line.assert_law(&shoes.item).await.confirmed_units, 1, "both are at work");
    let ours = until_seen(&line).await;

    // The address leads to another deployment's Redis, or to an old copy of ours.
    let key = format!("{}:store", line.config.namespace);
    command(&redis.backend, &format!("SET {key} {}", StoreId::mint()));
    let unseen_for = async |long: Duration| {
        until("nobody sees it", async || {
            named(&line).await.filter(|(_, unseen)| *unseen > long).map(|_| ())
        })
        .await;
    };
    unseen_for(NOTICED).await;
    hold(&line, &shoes.item, "ghost", "key-2").await;
    unseen_for(NOTICED + Duration::from_secs(3)).await;
    assert_eq!(line.snapshot(&shoes.item).await.held, 1, "it was overdue for long");

    command(&redis.backend, &format!("SET {key} {ours}"));
    assert_eq!(line.assert_law(&shoes.item).await.confirmed_units, 2);
    line.stop_all().await;
}
