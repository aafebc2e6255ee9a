//! No buyer gets more than the limit, and a refused one takes nothing from the others.

use std::time::Duration;

use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, limited};
use trials::proxy::Proxy;
use trials::until::until;

fn won(answers: &[Answer]) -> usize {
    for answer in answers.iter().filter(|answer| answer.status != 202) {
        answer.assert_problem(409, "limit_reached", None);
    }
    answers.iter().filter(|answer| answer.status == 202).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_keys_of_one_buyer_buy_one_unit_and_leave_the_rest_to_others() {
    let sale = limited("shoe", 20, 1);
    let (mut line, first) = Line::selling(&sale).await;
    let second = line.ingress().await;

    let greedy = at_once((0..100).map(|number| async move {
        let address = if number % 2 == 0 { first } else { second };
        Buyer::new(address, "greedy").buy_patiently("shoe", &format!("key-{number}"), 1).await
    }))
    .await;
    assert_eq!(won(&greedy), 1);

    let others = at_once((0..19).map(|number| async move {
        Buyer::new(first, format!("buyer-{number}")).buy_patiently("shoe", "key-1", 1).await
    }))
    .await;
    assert_eq!(won(&others), 19, "every other unit can be sold");

    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.most_by_one_buyer), (20, 1));
    line.stop_all().await;
}

/// Everything that is asked while somebody else's reply is on its way goes to Redis in one call, so
/// the call itself has to count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn purchases_that_travel_together_share_one_limit_and_one_stock() {
    let sale = limited("shoe", 10, 3);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let mut config = line.config.clone();
    let redis = Proxy::to(&config.redis.url).await;
    config.redis.url = config.redis.url.with_address(redis.address());
    let address = line.ingress_with(config).await;
    line.start(Service::Consumer);
    let mut buyers: Vec<_> = (0..30).map(|number| (Buyer::new(address, "ann"), number)).collect();
    buyers.extend((30..60).map(|number| (Buyer::new(address, format!("buyer-{number}")), number)));
    for (buyer, _) in &mut buyers {
        buyer.client.connect().await.expect("a connection");
    }

    redis.delay(Duration::from_millis(400));
    let first = tokio::spawn(async move { Buyer::new(address, "first").buy("shoe", "k", 1).await });
    until("the first purchase is held", async || {
        (line.snapshot(&sale.item).await.held == 1).then_some(())
    })
    .await;
    let answers = at_once(buyers.into_iter().map(|(mut buyer, number)| async move {
        (number < 30, buyer.buy("shoe", &format!("key-{number}"), 2).await)
    }))
    .await;

    assert_eq!(first.await.expect("no panic").status, 202);
    let (anns, others): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(ann, _)| *ann);
    let anns: Vec<_> = anns.into_iter().map(|(_, answer)| answer).collect();
    let others = others.iter().filter(|(_, answer)| answer.status == 202).count();
    let of_ann = anns.iter().filter(|answer| answer.status == 202).count();
    // Nine units are left for twos: four sales, of which ann has one at most.
    assert!(of_ann <= 1, "{anns:?}");
    assert_eq!(of_ann + others, 4);
    redis.recover();
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (9, Some(1)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_and_two_do_not_fit_under_a_limit_of_three() {
    let sale = limited("shoe", 10, 3);
    let (mut line, address) = Line::selling(&sale).await;
    line.start(Service::Consumer);

    let pair = at_once(
        ["key-1", "key-2"]
            .map(|key| async move { Buyer::new(address, "ann").buy("shoe", key, 2).await }),
    )
    .await;
    assert_eq!(won(&pair), 1);
    let mut ann = Buyer::new(address, "ann");
    assert_eq!(ann.buy("shoe", "key-3", 1).await.status, 202, "one more fits");
    ann.buy("shoe", "key-4", 1).await.assert_problem(409, "limit_reached", None);
    ann.buy("shoe", "key-5", 1_000_000).await.assert_problem(409, "limit_reached", None);

    let mut bob = Buyer::new(address, "bob");
    for (key, units) in [("key-1", 3), ("key-2", 1)] {
        let status = bob.buy("shoe", key, units).await.status;
        assert_eq!(status, if units == 3 { 202 } else { 409 }, "{key}");
    }
    let carol = Buyer::new(address, "carol").buy("shoe", "key-1", 3).await;
    assert_eq!(carol.status, 202);
    let dora = Buyer::new(address, "dora").buy("shoe", "key-1", 1).await;
    assert_eq!(dora.status, 202, "the refused purchases took nothing: {dora:?}");

    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.most_by_one_buyer), (10, 3));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_differ_in_case_are_different_buyers() {
    let sale = limited("shoe", 5, 1);
    let (line, address) = Line::selling(&sale).await;
    for name in ["ann", "Ann"] {
        assert_eq!(Buyer::new(address, name).buy("shoe", "key-1", 1).await.status, 202, "{name}");
    }
    assert_eq!(line.assert_law(&sale.item).await.confirmed_units, 2);
    line.stop_all().await;
}
