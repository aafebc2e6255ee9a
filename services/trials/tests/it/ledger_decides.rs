//! The ledger has the last word, also when Redis sold more than there is.

use shared::domain::Decision;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::messages::{Post, reservation};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_with_less_stock_than_redis_rejects_the_rest_and_gives_it_back_once() {
    const BUYERS: usize = 20;
    let sale = limited("shoe", BUYERS as u64, 1);
    let (mut line, address) = Line::selling(&sale).await;
    line.start(Service::Consumer);
    // Sold where Redis did not hear of it: twelve of the twenty are gone.
    let elsewhere: Vec<_> = (0..12)
        .map(|number| reservation(&sale.item, &format!("elsewhere-{number}"), "key-1", 1))
        .collect();
    let decisions = line.ledger.commit(&elsewhere).await.expect("a decision");
    assert!(decisions.iter().all(|decision| matches!(decision, Decision::Ordered(_))));

    let ended = at_once((0..BUYERS).map(|number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let accepted = buyer.buy_patiently("shoe", "key-1", 1).await;
        assert_eq!(accepted.status, 202, "Redis has a unit for everybody: {accepted:?}");
        let state = buyer.final_state(&accepted).await;
        (buyer, accepted, state)
    }))
    .await;
    let (confirmed, rejected): (Vec<_>, Vec<_>) =
        ended.into_iter().partition(|(_, _, state)| state == "confirmed");
    assert_eq!((confirmed.len(), rejected.len()), (8, 12));

    line.until_settled(&sale.item).await;
    let mut post = Post::of(&line).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    assert_eq!(line.available(&sale.item).await, 12, "each rejected unit came back once");
    let books = line.books(&sale.item).await;
    assert_eq!((books.confirmed_units, books.ledger_available), (20, 0));

    for (mut buyer, accepted, _) in rejected {
        let found = buyer.order("shoe", accepted.request_id()).await;
        assert_eq!((found.text("status"), found.text("reason")), ("rejected", "sold_out"));
        // A decision is sticky, and the same key never takes again.
        let again = buyer.buy("shoe", "key-1", 1).await;
        assert_eq!((again.status, again.text("status")), (200, "rejected"), "{again:?}");
        assert_eq!((again.text("reason"), again.is_replayed()), ("sold_out", true));
    }
    assert_eq!(line.available(&sale.item).await, 12);
    for (mut buyer, _, _) in confirmed {
        buyer.buy("shoe", "key-2", 1).await.assert_problem(409, "limit_reached", None);
    }
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_buyer_may_try_again_under_a_limit_of_one() {
    let sale = limited("shoe", 1, 1);
    let (line, address) = Line::selling(&sale).await;
    line.ledger.commit(&[reservation(&sale.item, "elsewhere", "key-1", 1)]).await.expect("sold");
    let mut ann = Buyer::new(address, "ann");
    for key in ["key-1", "key-2", "key-3"] {
        // The restored hold no longer counts against the limit.
        let accepted = ann.buy("shoe", key, 1).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        assert_eq!(ann.final_state(&accepted).await, "rejected");
        line.until_settled(&sale.item).await;
    }
    assert_eq!(line.available(&sale.item).await, 1);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_judges_the_limit_again() {
    let sale = limited("shoe", 10, 2);
    let (line, address) = Line::selling(&sale).await;
    // Bought where Redis did not hear of it.
    line.ledger.commit(&[reservation(&sale.item, "ann", "elsewhere", 2)]).await.expect("sold");
    let mut ann = Buyer::new(address, "ann");
    let accepted = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(accepted.status, 202);
    assert_eq!(ann.final_state(&accepted).await, "rejected");
    let found = ann.order("shoe", accepted.request_id()).await;
    assert_eq!(found.text("reason"), "limit_reached", "{found:?}");
    line.until_settled(&sale.item).await;
    assert_eq!(line.available(&sale.item).await, 10);
    assert_eq!(line.books(&sale.item).await.most_by_one_buyer, 2);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_twos_sells_one_of_three_units_twice_to_nobody() {
    let sale = sale("shoe", 3);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let mut post = Post::of(&line).await;
    // One message, so that one transaction decides them all against the same three units.
    let twos: Vec<_> =
        (0..10).map(|number| reservation(&sale.item, &format!("b-{number}"), "k", 2)).collect();
    post.place(&twos).await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let books = line.books(&sale.item).await;
    assert_eq!((books.confirmed_units, books.ledger_available), (2, 1));
    let orders = line.ledger.count_orders(&sale.item).await.expect("the orders");
    assert_eq!((orders.confirmed, orders.rejected), (1, 9));
    line.stop_all().await;
}
