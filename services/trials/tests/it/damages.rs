//! Backends that run, but not as they should.

use shared::domain::partition;
use tokio::task::block_in_place;
use trials::buyer::Buyer;
use trials::line::{Line, Service, limited, sale};
use trials::messages::reservation;
use trials::stack::{command, own_rabbitmq, own_redis};
use trials::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_sells_nothing_and_still_settles_what_it_holds() {
    let redis = own_redis();
    let sale = limited("shoe", 4, 1);
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.sell(&sale).await;
    let address = line.ingress().await;
    // Two of four are gone where Redis did not hear of it, and three are held.
    let elsewhere = ["x", "y"].map(|name| reservation(&sale.item, name, "key-1", 1));
    line.ledger.commit(&elsewhere).await.expect("sold");
    let mut buyers = Vec::new();
    for name in ["ann", "bob", "carol"] {
        let mut buyer = Buyer::new(address, name);
        let accepted = buyer.buy("shoe", "key-1", 1).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        buyers.push((buyer, accepted));
    }

    command(&redis.backend, "CONFIG SET maxmemory 1");
    let mut dora = Buyer::new(address, "dora");
    dora.buy("shoe", "key-1", 1).await.assert_problem(503, "not_ready", None);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let mut states = Vec::new();
    for (buyer, accepted) in &mut buyers {
        states.push(buyer.final_state(accepted).await);
    }
    assert_eq!(states, ["confirmed", "confirmed", "rejected"]);
    assert_eq!(line.available(&sale.item).await, 2, "the rejected unit came back");

    command(&redis.backend, "CONFIG SET maxmemory 0");
    let accepted = dora.buy("shoe", "key-1", 1).await;
    assert_eq!((accepted.status, accepted.is_replayed()), (202, false), "{accepted:?}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_redis_has_forgotten_are_loaded_again() {
    let redis = own_redis();
    let sale = sale("shoe", 5);
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.sell(&sale).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    let mut ann = Buyer::new(address, "ann");
    for key in ["key-1", "key-2", "key-3"] {
        command(&redis.backend, "SCRIPT FLUSH");
        let accepted = ann.buy("shoe", key, 1).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        assert_eq!(ann.final_state(&accepted).await, "confirmed");
    }
    assert_eq!(line.assert_law(&sale.item).await.confirmed_units, 3);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_that_somebody_deletes_are_declared_again_and_cost_no_order() {
    let rabbitmq = own_rabbitmq();
    let sale = sale("shoe", 20);
    let mut line = Line::new().await;
    line.move_to_rabbitmq(&rabbitmq.backend.url());
    line.sell(&sale).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let mut ann = Buyer::new(address, "ann");
    let first = ann.buy("shoe", "first", 1).await;
    assert_eq!(ann.final_state(&first).await, "confirmed");

    let orders = format!("orders.{}", partition(&sale.item, line.config.rabbitmq.partitions));
    let queues = [orders.as_str(), "orders.unrouted", "compensations", "dead", &orders];
    for (turn, queue) in queues.into_iter().enumerate() {
        let name = format!("{}.{queue}", line.config.namespace);
        block_in_place(|| rabbitmq.backend.ctl(&["delete_queue", &name])).expect("deleted");
        let accepted = ann.buy("shoe", &format!("key-{turn}"), 1).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        assert_eq!(ann.final_state(&accepted).await, "confirmed", "after {queue}");
    }

    // The way back works too: a batch that the ledger cannot serve is compensated.
    let name = format!("{}.compensations", line.config.namespace);
    block_in_place(|| rabbitmq.backend.ctl(&["delete_queue", &name])).expect("deleted");
    let rest = line.books(&sale.item).await.ledger_available;
    line.ledger.commit(&[reservation(&sale.item, "elsewhere", "k", rest)]).await.expect("sold");
    let accepted = ann.buy_patiently("shoe", "too-late", 1).await;
    assert_eq!(ann.final_state(&accepted).await, "rejected");
    until("the unit is back", async || (line.available(&sale.item).await == rest).then_some(()))
        .await;
    line.stop_all().await;
}
