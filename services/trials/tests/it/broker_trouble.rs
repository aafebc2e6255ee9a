//! The broker loses what it was told to keep, stops taking messages, or stops altogether.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shared::devstack::RabbitMq;
use shared::domain::broken_laws;
use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, sale};
use trials::messages::reservation;
use trials::stack::own_stack;
use trials::until::until;

/// Longer than ingress lets anybody wait: Redis twice, the broker once, and what was in front.
const ANSWERED_WITHIN: Duration = Duration::from_secs(8);

async fn full_line(line: &mut Line) -> SocketAddr {
    let address = line.ingress().await;
    for service in [Service::Consumer, Service::Compensator, Service::Reconciler] {
        line.start(service);
    }
    address
}

/// A buyer that goes on buying until told to stop; what was accepted in the end, key by key.
async fn keep_buying(
    address: SocketAddr,
    number: usize,
    stop: Arc<AtomicBool>,
) -> (Buyer, Vec<Answer>) {
    let mut buyer = Buyer::new(address, format!("buyer-{number}"));
    let mut accepted = Vec::new();
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let answer = buyer.buy_patiently("shoe", &format!("key-{turn}"), 1).await;
        match answer.status {
            200 | 202 => accepted.push(answer),
            409 => break,
            _ => panic!("{answer:?}"),
        }
    }
    (buyer, accepted)
}

fn rabbitmqctl(rabbitmq: &RabbitMq, arguments: &[&str]) {
    tokio::task::block_in_place(|| rabbitmq.ctl(arguments)).expect("rabbitmqctl");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_exchanges_and_bindings_that_are_deleted_come_back_and_nothing_is_lost() {
    const SOLD_ELSEWHERE: u64 = 1_500;
    let stack = own_stack();
    let rabbitmq = &stack.backend.rabbitmq;
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.hurry(Duration::from_secs(1));
    let shoes = sale("shoe", 3_000);
    line.sell(&shoes).await;
    // The ledger has less than Redis, so that compensations travel as well.
    let elsewhere: Vec<_> = (0..SOLD_ELSEWHERE)
        .map(|number| reservation(&shoes.item, &format!("elsewhere-{number}"), "key-1", 1))
        .collect();
    line.ledger.commit(&elsewhere).await.expect("sold elsewhere");
    let address = full_line(&mut line).await;

    let stop = Arc::new(AtomicBool::new(false));
    let buying: Vec<_> = (0..16)
        .map(|number| tokio::spawn(keep_buying(address, number, Arc::clone(&stop))))
        .collect();
    let namespace = line.config.namespace.to_string();
    let exchange = |action: &str| {
        format!(
            "R = rabbit_misc:r(<<\"/\">>, exchange, <<\"{namespace}.reservations\">>), {action}."
        )
    };
    for damage in [
        vec!["delete_queue".to_owned(), format!("{namespace}.orders.0")],
        vec!["delete_queue".to_owned(), format!("{namespace}.orders.1")],
        vec!["eval".to_owned(), exchange("rabbit_exchange:delete(R, false, <<\"trial\">>)")],
        vec!["delete_queue".to_owned(), format!("{namespace}.compensations")],
        vec!["delete_queue".to_owned(), format!("{namespace}.orders.unrouted")],
        vec![
            "eval".to_owned(),
            exchange(
                "[rabbit_binding:remove(B, <<\"trial\">>) || B <- rabbit_binding:list_for_source(R)]",
            ),
        ],
        vec!["delete_queue".to_owned(), format!("{namespace}.dead")],
    ] {
        let arguments: Vec<&str> = damage.iter().map(String::as_str).collect();
        let sold = line.ledger.count_orders(&shoes.item).await.expect("orders").confirmed;
        rabbitmqctl(rabbitmq, &arguments);
        // Selling goes on: new purchases are decided after the damage.
        until("orders are decided again", async || {
            let orders = line.ledger.count_orders(&shoes.item).await.expect("orders");
            (orders.confirmed + orders.rejected > sold + 20 || orders.confirmed >= 3_000)
                .then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut accepted = 0;
    for buyer in buying {
        let (mut buyer, answers) = buyer.await.expect("no panic");
        for answer in answers {
            let state = buyer.final_state(&answer).await;
            assert!(["confirmed", "rejected"].contains(&state.as_str()), "{state}");
            accepted += 1;
        }
    }
    line.until_settled(&shoes.item).await;
    // Redis never heard of what was sold elsewhere, until it is compared with the ledger.
    line.reconcile(&shoes.item).await;
    let books = line.books(&shoes.item).await;
    assert_eq!(broken_laws(&books), [], "{books:?}");
    assert!(accepted > 100, "{accepted} purchases, {books:?}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_alarm_costs_time_but_nothing_else() {
    const BUYERS: usize = 1_000;
    const ALARM: Duration = Duration::from_secs(10);
    let stack = own_stack();
    let rabbitmq = &stack.backend.rabbitmq;
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.hurry(Duration::from_secs(1));
    let shoes = sale("shoe", BUYERS as u64 / 2);
    line.sell(&shoes).await;
    let address = full_line(&mut line).await;

    rabbitmqctl(rabbitmq, &["set_vm_memory_high_watermark", "absolute", "1"]);
    let lifted = Arc::new(AtomicBool::new(false));
    let buyers = at_once_spawned(BUYERS, address, &lifted);
    let started = Instant::now();
    until("the alarm has lasted", async || (started.elapsed() > ALARM).then_some(())).await;
    rabbitmqctl(rabbitmq, &["set_vm_memory_high_watermark", "0.4"]);
    lifted.store(true, Ordering::Relaxed);

    let (mut sold, mut refused) = (0, 0);
    for buyer in buyers {
        let (mut buyer, answer) = buyer.await.expect("no panic");
        match answer.status {
            200 | 202 => {
                assert_eq!(buyer.final_state(&answer).await, "confirmed");
                sold += 1;
            }
            409 => refused += 1,
            _ => panic!("{answer:?}"),
        }
    }
    assert_eq!((sold, refused), (BUYERS / 2, BUYERS / 2));
    line.assert_law(&shoes.item).await;
    line.stop_all().await;
}

/// Buyers that try again until they have an answer other than 503, each of which comes in time.
fn at_once_spawned(
    buyers: usize,
    address: SocketAddr,
    lifted: &Arc<AtomicBool>,
) -> Vec<tokio::task::JoinHandle<(Buyer, Answer)>> {
    let one = |number: usize, lifted: Arc<AtomicBool>| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        loop {
            let asked = Instant::now();
            let answer = buyer.buy("shoe", "key-1", 1).await;
            assert!(asked.elapsed() < ANSWERED_WITHIN, "answered after {:?}", asked.elapsed());
            if answer.status != 503 {
                return (buyer, answer);
            }
            assert!(
                ["broker_unavailable", "unknown_outcome"].contains(&answer.text("code")),
                "{answer:?}"
            );
            let pause = if lifted.load(Ordering::Relaxed) { 100 } else { 1_000 };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    };
    (0..buyers).map(|number| tokio::spawn(one(number, Arc::clone(lifted)))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_broker_leaves_exactly_one_order_or_restore_for_each_request() {
    const BUYERS: usize = 60;
    const FROZEN: Duration = Duration::from_secs(10);
    let stack = own_stack();
    let mut line = Line::on(stack.backend.endpoints()).await;
    line.hurry(Duration::from_secs(1));
    let shoes = sale("shoe", BUYERS as u64);
    line.sell(&shoes).await;
    let address = full_line(&mut line).await;
    let rabbitmq = &stack.backend.rabbitmq;

    // Half of the buyers ask while the broker is frozen, and never again.
    rabbitmq.pause();
    let started = Instant::now();
    let answers = at_once((0..BUYERS).map(|number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let answer = buyer.buy("shoe", "key-1", 1).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        answer.text("code").to_owned()
    }))
    .await;
    let unknown = answers.iter().filter(|code| *code == "unknown_outcome").count();
    until("it has been frozen for long", async || (started.elapsed() > FROZEN).then_some(())).await;
    rabbitmq.resume();

    // Whoever holds a unit gets an order, without asking again.
    let books = line.assert_law(&shoes.item).await;
    assert!(books.confirmed_units >= unknown as u64, "{unknown} unknown, {books:?}");
    let orders = line.ledger.count_orders(&shoes.item).await.expect("orders");
    assert_eq!((orders.rejected, orders.expired), (0, 0));
    assert_eq!(orders.confirmed, orders.buyers, "one order each");
    // And selling goes on without a restart.
    let mut late = Buyer::new(address, "late");
    let answer = late.buy_patiently("shoe", "key-1", 1).await;
    assert!([202, 409].contains(&answer.status), "{answer:?}");
    line.stop_all().await;
}
