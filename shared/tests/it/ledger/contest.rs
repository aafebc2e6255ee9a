//! Many connections decide at the same time, and cannot sell one unit too many.

use futures_util::future::join_all;
use shared::domain::{Decision, OrderState, Reservation};
use shared::ledger::{Ledger, LedgerError};

use super::{Books, another, reservation};

impl Books {
    /// A consumer of its own, with its own connections.
    fn beside(&self) -> Ledger {
        Ledger::connect(&self.config).expect("a URL")
    }
}

/// As a consumer does: after an error the batch is committed again, with a bound.
async fn decide(ledger: &Ledger, batch: &[Reservation]) -> Vec<Decision> {
    let mut errors: Vec<LedgerError> = Vec::new();
    for _ in 0..5 {
        match ledger.commit(batch).await {
            Ok(decisions) => return decisions,
            Err(error) => errors.push(error),
        }
    }
    panic!("{errors:?}");
}

fn is_confirmed(decision: &&Decision) -> bool {
    matches!(decision, Decision::Ordered(order) if order.state == OrderState::Confirmed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn competing_batches_never_oversell() {
    const ROUNDS: usize = 40;
    let books = Books::new().await;
    let consumers = [books.beside(), books.beside(), books.beside()];
    for round in 0..ROUNDS {
        let item = format!("shoe-{round}");
        books.put(&item, 10, Some(2)).await;
        // Each wants 8 of the 10 units; two buyers stand in all three batches, with other keys.
        let batches: Vec<Vec<Reservation>> = (0..consumers.len())
            .map(|consumer| {
                let buyers = ["ann".to_owned(), "bob".to_owned()].into_iter();
                let buyers = buyers.chain((0..2).map(|n| format!("buyer-{consumer}-{n}")));
                buyers.map(|buyer| reservation(&item, &buyer, &consumer.to_string(), 2)).collect()
            })
            .collect();
        let decided =
            join_all(consumers.iter().zip(&batches).map(|(ledger, batch)| decide(ledger, batch)))
                .await;
        let winners = decided.iter().flatten().filter(is_confirmed).count();
        assert_eq!(winners, 5, "round {round}");
        let counts = books.count(&item).await;
        assert_eq!((counts.confirmed_units, counts.most_by_one_buyer), (10, 2));
        assert_eq!(books.item(&item).await.available, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_message_that_several_consumers_got_is_decided_once_and_all_are_told_the_same() {
    const ROUNDS: usize = 40;
    let books = Books::selling(1_000, None).await;
    let consumers = [books.beside(), books.beside(), books.beside()];
    for round in 0..ROUNDS {
        let first = reservation("shoe", "ann", &round.to_string(), 1);
        let second = another(&first);
        // Two deliveries of the one reservation, and a surplus of the same request.
        let batches = [[first.clone()], [first.clone()], [second.clone()]];
        let decided =
            join_all(consumers.iter().zip(&batches).map(|(ledger, batch)| decide(ledger, batch)))
                .await
                .concat();
        let order = books.order(first.request_id).await.expect("decided");
        for (decision, batch) in decided.iter().zip(&batches) {
            let expected = if order.reservation_id == batch[0].reservation_id {
                Decision::Ordered(order.clone())
            } else {
                Decision::Surplus(order.clone())
            };
            assert_eq!(*decision, expected, "round {round}");
        }
    }
    assert_eq!(books.count("shoe").await.confirmed, ROUNDS as u64);
    books.balance("shoe").await;
}

/// Stock is plentiful, so nothing but the row lock keeps two batches from each counting a buyer's
/// units before the other has sold any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn competing_batches_never_exceed_a_limit() {
    const ROUNDS: usize = 40;
    let books = Books::selling(1_000_000, Some(2)).await;
    let consumers = [books.beside(), books.beside(), books.beside()];
    for round in 0..ROUNDS {
        let buyer = format!("buyer-{round}");
        let batches: Vec<_> = (0..consumers.len())
            .map(|consumer| [reservation("shoe", &buyer, &consumer.to_string(), 2)])
            .collect();
        let decided =
            join_all(consumers.iter().zip(&batches).map(|(ledger, batch)| decide(ledger, batch)));
        let winners = decided.await.concat().iter().filter(is_confirmed).count();
        assert_eq!(winners, 1, "round {round}");
    }
    assert_eq!(books.count("shoe").await.most_by_one_buyer, 2);
    books.balance("shoe").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_name_the_same_items_in_other_orders_never_block_each_other() {
    const ROUNDS: usize = 25;
    // Many, so that taking the locks lasts long enough for batches to meet.
    let items: Vec<String> = (0..100).map(|n| format!("item-{n:03}")).collect();
    let books = Books::new().await;
    for item in &items {
        books.put(item, 1_000, None).await;
    }
    let consumers: Vec<Ledger> = (0..4).map(|_| books.beside()).collect();
    for round in 0..ROUNDS {
        let batches: Vec<Vec<Reservation>> = (0..consumers.len())
            .map(|consumer| {
                let mut batch: Vec<_> = items
                    .iter()
                    .map(|item| reservation(item, "ann", &format!("{consumer}-{round}"), 1))
                    .collect();
                if consumer % 2 == 1 {
                    batch.reverse();
                }
                batch
            })
            .collect();
        let all = consumers.iter().zip(&batches).map(|(ledger, batch)| ledger.commit(batch));
        for decided in join_all(all).await {
            let decided = decided.expect("no deadlock, so no error");
            assert_eq!(decided.iter().filter(is_confirmed).count(), items.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_either_sold_or_expired_never_both() {
    const ROUNDS: usize = 40;
    let books = Books::selling(1_000, None).await;
    let consumer = books.beside();
    for round in 0..ROUNDS {
        let one = reservation("shoe", "ann", &round.to_string(), 1);
        let batch = [one.clone()];
        // Whoever begins a little earlier should not always win.
        let (decided, expired) = if round % 2 == 0 {
            tokio::join!(decide(&consumer, &batch), books.expire(&one))
        } else {
            let (expired, decided) = tokio::join!(books.expire(&one), decide(&consumer, &batch));
            (decided, expired)
        };
        let order = books.order(one.request_id).await.expect("decided");
        assert_eq!(decided, [Decision::Ordered(order.clone())]);
        assert_eq!(expired, Some(order.clone()));
    }
    let counts = books.count("shoe").await;
    assert_eq!(counts.confirmed + counts.expired, ROUNDS as u64);
    books.balance("shoe").await;
}
