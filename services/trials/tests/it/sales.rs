//! What LastUnit is for.

use std::sync::Arc;

use shared::domain::ItemId;
use tokio::sync::Barrier;
use trials::buyer::{Answer, Buyer, at_once};
use trials::line::{Line, Service, sale};
use trials::messages::Post;

/// Buyers who connect, wait for each other, and buy one unit each at the same moment.
async fn rush(
    buyers: u32,
    address: std::net::SocketAddr,
    item: &'static str,
    quantity: u32,
) -> Vec<(Buyer, Answer)> {
    let barrier = Arc::new(Barrier::new(buyers as usize));
    at_once((0..buyers).map(|number| {
        let barrier = Arc::clone(&barrier);
        async move {
            let mut buyer = Buyer::new(address, format!("buyer-{number}"));
            buyer.client.connect().await.expect("a connection");
            barrier.wait().await;
            let answer = buyer.buy_patiently(item, "key-1", quantity).await;
            (buyer, answer)
        }
    }))
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_buyers_at_once_buy_exactly_the_one_hundred_and_fifty_units() {
    let sale = sale("shoe", 150);
    let (mut line, address) = Line::selling(&sale).await;
    line.start(Service::Consumer);

    let answers = rush(300, address, "shoe", 1).await;

    let (winners, losers): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(_, answer)| answer.status == 202);
    assert_eq!((winners.len(), losers.len()), (150, 150));
    for (_, answer) in losers {
        answer.assert_problem(409, "sold_out", None);
    }
    for (mut buyer, answer) in winners {
        assert_eq!(buyer.final_state(&answer).await, "confirmed");
    }
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (150, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_of_three_leave_the_tenth_unit_to_a_buyer_of_one() {
    let sale = sale("shoe", 10);
    let (line, address) = Line::selling(&sale).await;

    let answers = rush(40, address, "shoe", 3).await;
    let won = answers.iter().filter(|(_, answer)| answer.status == 202).count();
    assert_eq!(won, 3, "three times three units fit into ten");
    assert_eq!(line.available(&sale.item).await, 1);

    let modest = Buyer::new(address, "modest").buy("shoe", "key-1", 1).await;
    assert_eq!(modest.status, 202, "{modest:?}");
    let books = line.assert_law(&sale.item).await;
    assert_eq!(books.confirmed_units, 10);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_that_differ_in_case_only_are_sold_apart() {
    let (upper, lower) = (sale("Shoe", 1), sale("shoe", 1));
    let mut line = Line::new().await;
    line.sell(&upper).await;
    line.sell(&lower).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);

    let mut ann = Buyer::new(address, "ann");
    for item in ["Shoe", "shoe"] {
        assert_eq!(ann.buy(item, "key-1", 1).await.status, 202, "{item}");
    }
    for item in [&upper.item, &lower.item] {
        assert_eq!(line.assert_law(item).await.confirmed_units, 1);
    }
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worlds_on_one_stack_do_not_touch_each_other() {
    let shoe: ItemId = "shoe".parse().expect("an item");
    let (mine, at_mine) = Line::selling(&sale("shoe", 5)).await;
    // The same item, buyer and key, in another namespace with another ledger; no consumer there.
    let mut theirs = Line::new().await;
    theirs.sell(&sale("shoe", 5)).await;
    let at_theirs = theirs.ingress().await;

    let here = Buyer::new(at_mine, "ann").buy("shoe", "key-1", 2).await;
    let there = Buyer::new(at_theirs, "ann").buy("shoe", "key-1", 1).await;
    assert_eq!((here.status, there.status), (202, 202));

    let mut post = Post::of(&mine).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new(), "nothing foreign came to my consumer");
    assert_eq!(mine.assert_law(&shoe).await.confirmed_units, 2);
    assert_eq!(theirs.books(&shoe).await.confirmed_units, 0);
    assert_eq!(theirs.snapshot(&shoe).await.held, 1, "their order still waits for their consumer");
    mine.stop_all().await;
    theirs.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warming_up_in_mid_sale_changes_nothing() {
    let sale = sale("shoe", 10);
    let (line, address) = Line::selling(&sale).await;
    let mut ann = Buyer::new(address, "ann");
    assert_eq!(ann.buy("shoe", "key-1", 4).await.status, 202);
    let before = line.snapshot(&sale.item).await;

    for warmed in at_once((0..4).map(|_| {
        let (ledger, stock, item) = (line.ledger.clone(), line.stock.clone(), sale.item.clone());
        async move { reconciler::warm(&ledger, &stock, &item).await }
    }))
    .await
    {
        assert!(matches!(warmed, Ok(reconciler::Warmed::Live { .. })), "{warmed:?}");
    }

    let after = line.snapshot(&sale.item).await;
    assert_eq!((after.epoch, after.available), (before.epoch, before.available));
    assert_eq!(line.assert_law(&sale.item).await.confirmed_units, 4);
    line.stop_all().await;
}
