//! Everybody behind ingress is away for long, or comes and goes all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shared::queue::ready_messages;
use tokio::task::block_in_place;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, sale};
use trials::stack::own_stack;
use trials::until::{until, within};

/// Far more than five looks of a reconciler that looks for the first time after 0.2 s.
const AWAY: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_accepted_purchases_outlive_consumers_broker_and_ledger() {
    const BUYERS: usize = 5_000;
    const CONNECTIONS: usize = 50;
    let mut stack = own_stack();
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.hurry(Duration::from_millis(200));
    // The ledger has less than Redis: whoever comes too late is rejected, and nobody is expired.
    let shoes = sale("shoe", BUYERS as u64);
    line.sell(&shoes).await;
    let elsewhere: Vec<_> = (0..100)
        .map(|n| trials::messages::reservation(&shoes.item, &format!("elsewhere-{n}"), "key-1", 1))
        .collect();
    line.ledger.commit(&elsewhere).await.expect("sold elsewhere");
    let address = line.ingress().await;
    at_once((0..CONNECTIONS).map(|connection| async move {
        for number in (connection..BUYERS).step_by(CONNECTIONS) {
            let mut buyer = Buyer::new(address, format!("buyer-{number}"));
            let answer = buyer.buy_patiently("shoe", "key-1", 1).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
    }))
    .await;
    line.start(Service::Reconciler);
    line.start(Service::Reconciler);
    let away = Instant::now();
    until("they have been away for long", async || (away.elapsed() > AWAY).then_some(())).await;
    let waiting = ready_messages(&line.config.rabbitmq, &line.config.namespace).await;
    let waiting: u32 = waiting.expect("the broker").values().sum();

    let stack = &mut stack.backend;
    block_in_place(|| {
        stack.rabbitmq.persist_queue_names().expect("the broker remembers its queues");
        stack.rabbitmq.kill().expect("killed");
        stack.postgres.kill().expect("killed");
    });
    let away = Instant::now();
    until("they have been away for long", async || (away.elapsed() > AWAY).then_some(())).await;
    block_in_place(|| {
        stack.postgres.restart().expect("restarted");
        stack.rabbitmq.restart().expect("restarted");
    });
    // What waited still waits, and the looks of two reconcilers have added no copies to it.
    within(Duration::from_secs(20), "the messages are seen again", async || {
        let ready = ready_messages(&line.config.rabbitmq, &line.config.namespace).await.ok()?;
        (ready.values().sum::<u32>() == waiting).then_some(())
    })
    .await;

    line.start(Service::Consumer);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.until_settled(&shoes.item).await;
    let orders = line.ledger.count_orders(&shoes.item).await.expect("orders");
    assert_eq!((orders.confirmed, orders.rejected), (BUYERS as u64, 100));
    assert_eq!(orders.expired, 0, "nobody is expired for being late");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_that_come_and_go_commit_nothing_twice() {
    const TURNS: u32 = 6;
    let mut line = Line::new().await;
    line.hurry(Duration::from_secs(1));
    let shoes = sale("shoe", 100_000);
    line.sell(&shoes).await;
    let address = line.ingress().await;
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let stop = Arc::new(AtomicBool::new(false));
    let buying: Vec<_> = (0..8)
        .map(|number| {
            let stop = Arc::clone(&stop);
            tokio::spawn(async move {
                let mut buyer = Buyer::new(address, format!("buyer-{number}"));
                let mut accepted = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("key-{accepted}");
                    assert_eq!(buyer.buy_patiently("shoe", &key, 1).await.status, 202);
                    accepted += 1;
                }
                accepted
            })
        })
        .collect();
    line.start(Service::Consumer);
    for turn in 0..TURNS {
        // The next one comes before the last one goes, and some are given no time at all.
        let begun = Instant::now();
        until("two seconds of selling", async || {
            (begun.elapsed() > Duration::from_secs(2)).then_some(())
        })
        .await;
        let grace = if turn % 2 == 0 { Duration::from_secs(10) } else { Duration::ZERO };
        line.stop_within(grace, Service::Consumer).await;
        line.start(Service::Consumer);
    }
    stop.store(true, Ordering::Relaxed);
    let mut accepted = 0;
    for buyer in buying {
        accepted += buyer.await.expect("no panic");
    }
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, accepted, "each accepted purchase is confirmed once");
    line.stop_all().await;
}
