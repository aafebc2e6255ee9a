//! Units move to where they are wanted: the sale ends with the last one, and nobody is refused before.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use trials::auditor::{Auditor, Purchase, Terms};
use trials::buyer::Buyer;
use trials::crowd::{Manner, Scene, Wish, buy_all};
use trials::line::sale;
use trials::until::PATIENCE;

use super::{buys, decide, selling};

fn wish(buyer: String, quantity: u32) -> Wish {
    let purchase = Purchase { buyer, key: "key-1".to_owned(), quantity };
    Wish { purchase, at: Duration::ZERO, manner: Manner::Patient }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_buckets_sell_every_unit_to_buyers_of_three_and_of_one() {
    const UNITS: u64 = 500;
    let shoes = sale("shoe", UNITS);
    let (mut line, doors) = selling(&shoes, 16).await;
    decide(&mut line);
    let wishes: Vec<_> = (0..350)
        .map(|number| match number % 7 {
            0..3 => wish(format!("three-{number}"), 3),
            _ => wish(format!("one-{number}"), 1),
        })
        .collect();
    let enough = CancellationToken::new();
    let time_is_up = enough.clone();
    tokio::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        time_is_up.cancel();
    });
    let scene = Scene { item: "shoe".to_owned(), ingresses: doors.to_vec(), enough };
    let heard = buy_all(&scene, &wishes, Instant::now()).await;

    let terms = Terms { total: UNITS, limit_per_buyer: UNITS };
    let auditor = Auditor::new(terms, heard, HashSet::new());
    assert_eq!(auditor.judge(), Vec::<String>::new());
    let tally = auditor.tally();
    assert_eq!((tally.purchases, tally.confirmed + tally.refused), (350, 350), "{tally:?}");
    // A buyer of one is served as long as there is any; so a remainder was refused to somebody.
    let books = line.assert_law(&shoes.item).await;
    let left = (books.ledger_available, books.redis_available);
    assert_eq!((books.confirmed_units, left), (UNITS, (0, Some(0))), "{tally:?}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_buyer_gets_the_last_unit_of_every_bucket() {
    let shoes = sale("shoe", 17);
    let (mut line, [first, second]) = selling(&shoes, 16).await;
    decide(&mut line);
    Buyer::new(first, "greedy")
        .buy_patiently("shoe", "key-1", 18)
        .await
        .assert_problem(409, "sold_out", None);
    assert_eq!(line.snapshot(&shoes.item).await.moving, 0, "nothing is moved for nobody");
    buys(first, "all", "key-1", 16).await;
    for door in [first, second] {
        let two = Buyer::new(door, "two").buy_patiently("shoe", "key-1", 2).await;
        two.assert_problem(409, "sold_out", None);
    }
    buys(second, "one", "key-1", 1).await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (17, Some(0)));
    line.stop_all().await;
}
