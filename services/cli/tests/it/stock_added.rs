//! `lastunit item add-stock`: buyers can have the units at once, once, whoever dies in between.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use shared::domain::{ItemId, Sale};
use trials::buyer::Buyer;
use trials::line::{Line, Service, sale};
use trials::until::{until, within};
use uuid::Uuid;

use crate::command::{json, lastunit, run, stderr};

/// What buyers may have to wait for units that were added.
const SOON: Duration = Duration::from_secs(2);

/// A sale whose last unit is gone, with two doors.
async fn sold_out(units: u64) -> (Line, Sale, [SocketAddr; 2]) {
    let shoes = sale("shoe", units);
    let (mut line, first) = Line::selling(&shoes).await;
    let second = line.ingress().await;
    let mut early = Buyer::new(first, "early");
    let all = u32::try_from(units).expect("few");
    assert_eq!(early.buy_patiently("shoe", "key-1", all).await.status, 202);
    for address in [first, second] {
        let late = Buyer::new(address, "late").buy_patiently("shoe", "key-1", 1).await;
        late.assert_problem(409, "sold_out", None);
    }
    line.until_settled(&shoes.item).await;
    (line, shoes, [first, second])
}

/// Buys so many units at this door; each can be had soon.
async fn buys(address: SocketAddr, buyer: &str, units: u32) {
    let mut buyer = Buyer::new(address, buyer);
    for number in 0..units {
        let key = format!("key-{number}");
        within(SOON, "there are units again", async || {
            (buyer.buy("shoe", &key, 1).await.status == 202).then_some(())
        })
        .await;
    }
}

async fn total(line: &Line, item: &ItemId) -> u64 {
    line.ledger.find_item(item).await.expect("the ledger").expect("an item").sale.total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn added_units_can_be_bought_at_every_door_and_not_one_more() {
    let (line, shoes, doors) = sold_out(3).await;
    let id = Uuid::new_v4().to_string();
    let add = ["item", "add-stock", "shoe", "--units", "4", "--id", &id, "--json"];
    let added = json(lastunit(&line.config).args(add));
    assert_eq!((&added["outcome"], &added["total"]), (&"added".into(), &7.into()));
    assert_eq!((&added["ledger_available"], &added["redis_available"]), (&4.into(), &4.into()));
    for (door, buyer) in doors.into_iter().zip(["ann", "bob"]) {
        buys(door, buyer, 2).await;
    }
    for door in doors {
        let late = Buyer::new(door, "late").buy_patiently("shoe", "key-2", 1).await;
        late.assert_problem(409, "sold_out", None);
    }
    let again = json(lastunit(&line.config).args(add));
    assert_eq!((&again["outcome"], &again["total"]), (&"already".into(), &7.into()));
    let other = ["item", "add-stock", "shoe", "--units", "5", "--id", &id];
    let refused = run(lastunit(&line.config).args(other));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("leave --id out"), "{}", stderr(&refused));
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.total, books.confirmed_units), (7, 7));
    line.stop_all().await;
}

/// The ledger has the units, Redis does not: the command has died in between.
async fn added_in_the_ledger_only(line: &Line, id: &str) {
    let add = ["item", "add-stock", "shoe", "--units", "4", "--id", id];
    let died = run(lastunit(&line.config).args(add).env("CRASH_AT", "add_stock.in_ledger"));
    assert_eq!(died.status.signal(), Some(6), "it dies: {}", stderr(&died));
    assert!(stderr(&died).contains("add_stock.in_ledger"), "{}", stderr(&died));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_killed_adds_once_when_it_is_run_again() {
    let (line, shoes, doors) = sold_out(3).await;
    let id = Uuid::new_v4().to_string();
    added_in_the_ledger_only(&line, &id).await;
    assert_eq!((total(&line, &shoes.item).await, line.available(&shoes.item).await), (7, 0));
    added_in_the_ledger_only(&line, &id).await;
    assert_eq!((total(&line, &shoes.item).await, line.available(&shoes.item).await), (7, 0));
    let add = ["item", "add-stock", "shoe", "--units", "4", "--id", &id, "--json"];
    let added = json(lastunit(&line.config).args(add));
    assert_eq!((&added["outcome"], &added["redis_available"]), (&"already".into(), &4.into()));
    buys(doors[0], "ann", 2).await;
    buys(doors[1], "bob", 2).await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.total, books.confirmed_units), (7, 7));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_brings_what_a_killed_command_has_added() {
    let (mut line, shoes, doors) = sold_out(3).await;
    let early = sale("early", 1);
    line.start(Service::Reconciler);
    line.put(&early).await;
    until("the reconciler has gone round", async || {
        let row = line.ledger.find_item(&early.item).await.ok()??;
        (row.epoch > 0).then_some(())
    })
    .await;
    added_in_the_ledger_only(&line, &Uuid::new_v4().to_string()).await;
    until("Redis has them", async || (line.available(&shoes.item).await == 4).then_some(())).await;
    buys(doors[0], "ann", 2).await;
    buys(doors[1], "bob", 2).await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.total, books.confirmed_units), (7, 7));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_are_added_before_the_warm_up_and_refused_where_they_cannot_be() {
    let line = Line::new().await;
    let ghost = ["item", "add-stock", "ghost", "--units", "1"];
    let refused = run(lastunit(&line.config).args(ghost));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("lastunit item list"), "{}", stderr(&refused));
    line.put(&sale("shoe", 1)).await;
    let add = ["item", "add-stock", "shoe", "--units", "4", "--json"];
    let added = json(lastunit(&line.config).args(add));
    assert_eq!((&added["total"], &added["redis_available"]), (&5.into(), &None::<u64>.into()));
    let more = ["item", "add-stock", "shoe", "--units", "1000000000"];
    let refused = run(lastunit(&line.config).args(more));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("1000000000"), "{}", stderr(&refused));
    let none = run(lastunit(&line.config).args(["item", "add-stock", "shoe", "--units", "0"]));
    assert_eq!(none.status.code(), Some(2));
}
