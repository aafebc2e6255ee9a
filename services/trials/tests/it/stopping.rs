//! What is told to stop finishes what it has begun, or leaves it so that another can.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shared::domain::OrderState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::messages::{Post, request_id, reservation};
use trials::proxy::Proxy;
use trials::until::{PATIENCE, Waiting, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_accepted_before_a_stop_becomes_final_after_a_restart() {
    const BUYERS: usize = 40;
    const EACH: usize = 10;
    let sale = limited("shoe", (BUYERS * EACH) as u64, EACH as u64);
    let (mut line, address) = Line::selling(&sale).await;
    line.start(Service::Consumer);

    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let burst = tokio::spawn(at_once((0..BUYERS).map(move |number| {
        let count = Arc::clone(&count);
        async move {
            let mut buyer = Buyer::new(address, format!("buyer-{number}"));
            let mut answers = Vec::new();
            for key in 0..EACH {
                let answer = buyer.try_buy("shoe", &format!("key-{key}"), 1).await;
                count.fetch_add(usize::from(answer.is_ok()), Ordering::Relaxed);
                answers.push((number, key, answer.ok()));
            }
            answers
        }
    })));
    until("the burst is in full swing", async || {
        (answered.load(Ordering::Relaxed) >= BUYERS).then_some(())
    })
    .await;
    line.stop_everything().await;
    let told = burst.await.expect("no panic").concat();
    let accepted = |answer: &Option<Answer>| answer.as_ref().is_some_and(Answer::is_accepted);
    let in_time = told.iter().filter(|(_, _, answer)| accepted(answer)).count();
    assert!(in_time < BUYERS * EACH, "it stopped in mid-burst, not after {in_time}");

    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let asked_again = at_once(told.into_iter().map(|(number, key, before)| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        match before {
            Some(answer) if answer.is_accepted() => buyer.final_state(&answer).await,
            Some(answer) if answer.status != 503 => panic!("a wrong refusal: {answer:?}"),
            _ => {
                let answer = buyer.buy_patiently("shoe", &format!("key-{key}"), 1).await;
                buyer.final_state(&answer).await
            }
        }
    }))
    .await;
    assert!(asked_again.iter().all(|state| state == "confirmed"), "{asked_again:?}");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (sale.total, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_that_stop_and_start_again_and_again_decide_everything_once() {
    let sale = sale("shoe", 3_000);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let mut post = Post::of(&line).await;
    let many: Vec<_> = (0..3_000)
        .map(|number| reservation(&sale.item, &format!("buyer-{number}"), "key-1", 1))
        .collect();
    for message in many.chunks(10) {
        post.place(message).await;
    }
    let decided = async |line: &Line| line.books(&sale.item).await.confirmed_units;
    for _ in 0..3 {
        let before = decided(&line).await;
        line.start(Service::Consumer);
        line.start(Service::Consumer);
        let waiting = Waiting::for_at_most(PATIENCE);
        while decided(&line).await == before && before < sale.total {
            waiting.a_moment("something is decided").await;
        }
        line.stop(Service::Consumer).await;
    }
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let books = line.books(&sale.item).await;
    assert_eq!((books.confirmed_units, books.ledger_available), (3_000, 0));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_gives_up_between_commit_and_confirm_leaves_the_confirm_to_the_next() {
    let sale = sale("shoe", 5);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let mut without_redis = line.config.clone();
    let redis = Proxy::to(&without_redis.redis.url).await;
    without_redis.redis.url = without_redis.redis.url.with_address(redis.address());
    line.start_with(Service::Consumer, without_redis);
    let mut ann = Buyer::new(address, "ann");
    // It starts only where it can compare; by now it has.
    let before = ann.buy("shoe", "before", 1).await;
    assert_eq!(ann.final_state(&before).await, "confirmed");
    redis.refuse();

    let accepted = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(accepted.status, 202);
    let id = request_id(&sale.item, "ann", "key-1");
    until("the ledger has decided", async || {
        let order = line.ledger.find_order(id).await.expect("the ledger");
        order.filter(|order| order.state == OrderState::Confirmed)
    })
    .await;
    let begun = Instant::now();
    line.stop_within(Duration::from_millis(100), Service::Consumer).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(line.snapshot(&sale.item).await.held, 1, "Redis has not heard of it");

    line.start(Service::Consumer);
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    assert_eq!(line.assert_law(&sale.item).await.confirmed_units, 2);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_on_which_nothing_happens_do_not_hold_up_a_stop() {
    let (mut line, address) = Line::selling(&sale("shoe", 5)).await;
    // One that has never said anything, and one that keeps its connection after an answer.
    let mut silent = TcpStream::connect(address).await.expect("a connection");
    let mut kept = Buyer::new(address, "ann");
    assert_eq!(kept.buy("shoe", "key-1", 1).await.status, 202);

    let begun = Instant::now();
    line.stop(Service::Ingress).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let left = silent.read(&mut [0; 16]).await;
    assert!(matches!(left, Ok(0) | Err(_)), "{left:?}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_finishes_its_request_holds_up_a_stop_no_longer_than_the_grace() {
    let (mut line, address) = Line::selling(&sale("shoe", 5)).await;
    let mut endless = TcpStream::connect(address).await.expect("a connection");
    let head = "POST /v1/items/shoe/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{";
    endless.write_all(head.as_bytes()).await.expect("a part of the request is sent");
    // Answered on another connection: by now the service has read the part.
    assert_eq!(Buyer::new(address, "ann").buy("shoe", "key-1", 1).await.status, 202);

    let begun = Instant::now();
    line.stop_within(Duration::from_millis(300), Service::Ingress).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    line.stop_all().await;
}
