//! Every service may die before and after each of its steps: whatever it had begun is finished.
//!
//! The one that dies is a process of its own with a crash point; the others run beside it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shared::domain::broken_laws;
use trials::buyer::{Buyer, at_once};
use trials::faults::{Member, crash_points};
use trials::line::{Line, Service, limited};
use trials::messages::{Post, hold, reservation};
use trials::processes::{Fleet, Manning, Process};
use trials::stack::Scratch;
use trials::until::until;

const UNITS: u64 = 12;
const BUYERS: usize = 20;
const SOON: Duration = Duration::from_millis(500);

/// Units that the ledger has sold without Redis, so that compensations travel as well.
const SOLD_ELSEWHERE: u64 = 4;

/// A small sale during which one process dies at this point and another takes its place.
async fn dies_at(service: Service, point: &str) {
    let mut line = Line::new().await;
    line.hurry(SOON);
    let shoes = limited("shoe", UNITS, 1);
    line.sell(&shoes).await;
    let elsewhere: Vec<_> = (0..SOLD_ELSEWHERE)
        .map(|number| reservation(&shoes.item, &format!("elsewhere-{number}"), "key-1", 1))
        .collect();
    line.ledger.commit(&elsewhere).await.expect("sold elsewhere");
    // Somebody took a unit and died before publishing: work for the reconciler.
    hold(&line, &shoes.item, "ghost", "key-1").await;

    let scratch = Scratch::create();
    let victim = man(&line, service, scratch.path()).await;
    victim
        .does({
            let point = point.to_owned();
            move |victim| victim.start(Some(point))
        })
        .await;
    let address = others(&mut line, service, &victim).await;
    // A compensation that comes before its order is decided, for the step that expires.
    let post = Post::of(&line).await;
    post.compensate(&reservation(&shoes.item, "early", "key-1", 1)).await;

    let buying = tokio::spawn(at_once((0..BUYERS).map(move |number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let answer = buyer.buy_patiently("shoe", "key-1", 1).await;
        (buyer, answer)
    })));
    until(&format!("{service:?} dies at {point}"), async || {
        victim.does(|victim| victim.has_ended()).await.then_some(())
    })
    .await;
    victim.does(|victim| victim.start(None)).await;

    for (mut buyer, answer) in buying.await.expect("no panic") {
        match answer.status {
            200 | 202 => {
                let state = buyer.final_state(&answer).await;
                assert!(["confirmed", "rejected"].contains(&state.as_str()), "{state}");
            }
            409 => assert_eq!(answer.text("code"), "sold_out"),
            _ => panic!("{answer:?}"),
        }
    }
    line.until_settled(&shoes.item).await;
    line.reconcile(&shoes.item).await;
    let books = line.books(&shoes.item).await;
    assert_eq!(broken_laws(&books), [], "{service:?} died at {point}: {books:?}");
    victim.does(|victim| victim.stop()).await;
    line.stop_all().await;
}

async fn man(line: &Line, service: Service, dir: &Path) -> Arc<Process> {
    let program = Path::new(env!("CARGO_BIN_EXE_trial"));
    let fleet = Fleet::man(Manning { program, dir, first_look: SOON, config: &line.config }).await;
    fleet.find(Member::first(service))
}

/// One of each other service, in this process; where buyers ask.
async fn others(line: &mut Line, victim: Service, process: &Process) -> SocketAddr {
    for service in [Service::Consumer, Service::Compensator, Service::Reconciler] {
        if service != victim {
            line.start(service);
        }
    }
    if victim == Service::Ingress { process.address } else { line.ingress().await }
}

async fn dies_at_every_step(service: Service) {
    for point in crash_points(service) {
        dies_at(service, point).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_may_die_at_every_step() {
    dies_at_every_step(Service::Ingress).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_may_die_at_every_step() {
    dies_at_every_step(Service::Consumer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compensator_may_die_at_every_step() {
    dies_at_every_step(Service::Compensator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_may_die_at_every_step() {
    dies_at_every_step(Service::Reconciler).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_is_killed_five_times_in_mid_batch_parks_nothing() {
    let mut line = Line::new().await;
    let shoes = limited("shoe", 400, 1);
    line.sell(&shoes).await;
    let post = Post::of(&line).await;
    let reservations: Vec<_> = (0..400)
        .map(|number| reservation(&shoes.item, &format!("buyer-{number}"), "key-1", 1))
        .collect();
    for message in reservations.chunks(4) {
        post.place(message).await;
    }
    let scratch = Scratch::create();
    let victim = man(&line, Service::Consumer, scratch.path()).await;
    for point in [
        "consumer.taken",
        "consumer.committed",
        "consumer.taken:2",
        "consumer.settled",
        "consumer.taken",
    ] {
        victim.does(move |victim| victim.start(Some(point.to_owned()))).await;
        until("the consumer dies", async || {
            victim.does(|victim| victim.has_ended()).await.then_some(())
        })
        .await;
    }
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let mut post = post;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new(), "nothing healthy is parked");
    let orders = line.ledger.count_orders(&shoes.item).await.expect("orders");
    assert_eq!((orders.confirmed, orders.rejected, orders.expired), (400, 0, 0));
    line.stop_all().await;
}
