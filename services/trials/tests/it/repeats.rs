//! The same request more than once is one purchase.

use std::collections::HashSet;

use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::messages::Post;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_buyer_who_sends_three_times_at_once_gets_one_of_the_last_units() {
    const BUYERS: u32 = 60;
    // As many units as buyers: a request that took twice would leave somebody without.
    let sale = limited("shoe", u64::from(BUYERS), 1);
    let (mut line, first) = Line::selling(&sale).await;
    let second = line.ingress().await;

    let answers = at_once((0..BUYERS).flat_map(|number| {
        // Two connections to one ingress and one to another, as a load balancer would do it.
        [first, first, second].map(|address| async move {
            let mut buyer = Buyer::new(address, format!("buyer-{number}"));
            (number, buyer.buy_patiently("shoe", "key-1", 1).await)
        })
    }))
    .await;

    for (number, answer) in &answers {
        assert!(answer.is_accepted(), "buyer {number}: {answer:?}");
    }
    for number in 0..BUYERS {
        let mine: Vec<&Answer> =
            answers.iter().filter(|(of, _)| *of == number).map(|(_, answer)| answer).collect();
        let ids: HashSet<_> = mine.iter().map(|answer| answer.request_id()).collect();
        assert_eq!((mine.len(), ids.len()), (3, 1), "{mine:?}");
        let replayed = mine.iter().filter(|answer| answer.is_replayed()).count();
        assert_eq!(replayed, 2, "one took the stock, the others were told so: {mine:?}");
    }

    let mut post = Post::of(&line).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (u64::from(BUYERS), Some(0)));

    // Everything is sold now, and everybody asks once more.
    for (number, before) in answers.iter().take(20) {
        let again = Buyer::new(second, format!("buyer-{number}")).buy("shoe", "key-1", 1).await;
        assert_eq!((again.status, again.text("status")), (200, "confirmed"), "{again:?}");
        assert!(again.is_replayed());
        assert_eq!(again.request_id(), before.request_id());
    }
    assert_eq!(line.books(&sale.item).await, books);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_retry_that_took_the_last_unit_is_still_accepted() {
    let sale = limited("shoe", 1, 1);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let (mut ann, mut bob) = (Buyer::new(address, "ann"), Buyer::new(address, "bob"));

    // No consumer yet: the purchase is not decided.
    let first = ann.buy("shoe", "key-1", 1).await;
    assert_eq!((first.status, first.is_replayed()), (202, false), "{first:?}");
    bob.buy("shoe", "key-1", 1).await.assert_problem(409, "sold_out", None);
    for _ in 0..3 {
        let again = ann.buy("shoe", "key-1", 1).await;
        assert_eq!((again.status, again.is_replayed()), (202, true), "{again:?}");
        assert_eq!(again.request_id(), first.request_id());
        assert_eq!(again.location(), first.location());
    }
    assert_eq!(line.snapshot(&sale.item).await.held, 1);

    line.start(Service::Consumer);
    line.start(Service::Compensator);
    assert_eq!(ann.final_state(&first).await, "confirmed");
    let again = ann.buy("shoe", "key-1", 1).await;
    assert_eq!((again.status, again.text("status")), (200, "confirmed"), "{again:?}");
    assert!(again.is_replayed());
    bob.buy("shoe", "key-2", 1).await.assert_problem(409, "sold_out", None);

    // The order was published four times.
    let mut post = Post::of(&line).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_private_to_its_buyer_and_its_item() {
    let (shoe, hat) = (sale("shoe", 10), sale("hat", 10));
    let (line, address) = Line::selling(&shoe).await;
    line.sell(&hat).await;

    let mut ids = HashSet::new();
    for (name, item) in [("ann", "shoe"), ("bob", "shoe"), ("ann", "hat"), ("bob", "hat")] {
        let mut buyer = Buyer::new(address, name);
        // The catalog hears of the hat a moment later.
        let answer = trials::until::until("the item is known", async || {
            let answer = buyer.buy(item, "key-1", 1).await;
            (answer.status != 404).then_some(answer)
        })
        .await;
        assert_eq!((answer.status, answer.is_replayed()), (202, false), "{name} {item}");
        ids.insert(answer.request_id());
    }
    assert_eq!(ids.len(), 4);
    for item in [&shoe.item, &hat.item] {
        assert_eq!(line.assert_law(item).await.confirmed_units, 2);
    }
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_with_another_quantity_is_refused_and_moves_nothing() {
    let sale = sale("shoe", 10);
    let (line, address) = Line::selling(&sale).await;
    let mut ann = Buyer::new(address, "ann");

    let first = ann.buy("shoe", "key-1", 2).await;
    assert_eq!(first.status, 202);
    ann.buy("shoe", "key-1", 3).await.assert_problem(422, "key_reused", Some("Idempotency-Key"));
    assert_eq!(ann.final_state(&first).await, "confirmed");
    ann.buy("shoe", "key-1", 1).await.assert_problem(422, "key_reused", Some("Idempotency-Key"));
    assert_eq!(ann.buy("shoe", "key-1", 2).await.status, 200, "the purchase itself is unharmed");

    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (2, Some(8)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_a_key_gets_one_that_names_its_purchase() {
    let sale = sale("shoe", 10);
    let (line, address) = Line::selling(&sale).await;
    let mut ann = Buyer::new(address, "ann");
    let headers = [("content-type", "application/json"), ("x-buyer-id", "ann")];
    let body = br#"{"quantity": 1}"#.to_vec();
    let path = "/v1/items/shoe/orders";

    let mut answers = Vec::new();
    for _ in 0..2 {
        let sent = ann.client.send(hyper::Method::POST, path, &headers, body.clone()).await;
        let answer = Answer::from(sent.expect("an answer"));
        assert_eq!((answer.status, answer.is_replayed()), (202, false), "{answer:?}");
        answers.push(answer);
    }
    assert_ne!(answers[0].request_id(), answers[1].request_id(), "two purchases");
    let minted = answers[0].header("idempotency-key").expect("the key that was minted").to_owned();
    let again = ann.buy("shoe", &minted, 1).await;
    assert_eq!(again.request_id(), answers[0].request_id());
    assert!(again.is_replayed());
    assert_eq!(line.assert_law(&sale.item).await.confirmed_units, 2);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_repeats_of_a_confirmed_order_all_say_confirmed() {
    let sale = sale("shoe", 5);
    let (line, address) = Line::selling(&sale).await;
    let mut ann = Buyer::new(address, "ann");
    let first = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(ann.final_state(&first).await, "confirmed");

    let again = at_once(
        (0..50).map(|_| async move { Buyer::new(address, "ann").buy("shoe", "key-1", 1).await }),
    )
    .await;

    for answer in again {
        assert_eq!((answer.status, answer.text("status")), (200, "confirmed"), "{answer:?}");
        assert_eq!(answer.request_id(), first.request_id());
    }
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(4)));
    line.stop_all().await;
}
