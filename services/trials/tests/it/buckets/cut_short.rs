//! A change of the layout dies at every step: the item sells again by itself, and the change succeeds
//! when it is run again.

use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::spawn_blocking;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited};
use trials::settings::tell_settings;
use trials::until::Waiting;

use super::{buys, count, decide, divide, selling, who_lives_in};

/// A lost item waits for what may be on its way; that and the lease of the dead one.
const SELLS_AGAIN: Duration = Duration::from_secs(120);

/// In the order in which they are passed. Buckets are written from the last to the first.
const POINTS: [&str; 8] = [
    "rebucket.frozen",
    "rebucket.settled",
    "warm.begun",
    "warm.bucket",
    "warm.bucket:2",
    "warm.bucket:4",
    "warm.building",
    "warm.built",
];

/// The command as a process of its own, which dies at this point.
async fn command_dies_at(line: &Line, buckets: u16, point: &'static str) {
    let mut operator = Command::new(env!("CARGO_BIN_EXE_trial"));
    tell_settings(&mut operator, &line.config);
    operator
        .args(["rebucket", "shoe", &buckets.to_string()])
        .env("CRASH_AT", point)
        .stderr(Stdio::piped());
    let output = spawn_blocking(move || operator.output()).await.expect("no panic");
    let log = String::from_utf8_lossy(&output.expect("a process").stderr).into_owned();
    let (name, _) = point.split_once(':').unwrap_or((point, ""));
    assert!(log.contains(&format!("crash point {name}")), "dies at {point}: {log}");
}

/// Buys and looks the order up until it is confirmed, for longer than anything else may take. While the
/// item is built anew there may be no answer to either.
async fn sells_again(door: std::net::SocketAddr, name: &str, key: &str) {
    let mut buyer = Buyer::new(door, name);
    let waiting = Waiting::for_at_most(SELLS_AGAIN);
    let order = loop {
        let answer = buyer.buy("shoe", key, 1).await;
        if answer.status != 503 {
            assert!(answer.is_accepted(), "{name}: {answer:?}");
            break answer.location();
        }
        // Nothing is wrong with Redis, and nobody is told so.
        assert!(["frozen", "not_warm"].contains(&answer.text("code")), "{name}: {answer:?}");
        waiting.a_moment("it sells again").await;
    };
    loop {
        let found = buyer.get(&order).await;
        match (found.status, found.text("status")) {
            (200, "confirmed") => return,
            (200, "reserved") | (503, _) => waiting.a_moment("the order is final").await,
            _ => panic!("{name}: {found:?}"),
        }
    }
}

async fn dies_at(point: &'static str, from: u16, to: u16) {
    let shoes = limited("shoe", 60, 2);
    let (mut line, doors) = selling(&shoes, from).await;
    decide(&mut line);
    line.start(Service::Reconciler);
    let most = from.max(to);
    let names: Vec<_> = (0..most).map(|bucket| who_lives_in(bucket, most, 0)).collect();
    for name in &names {
        buys(doors[0], name, "key-1", 1).await;
    }
    line.until_settled(&shoes.item).await;

    command_dies_at(&line, to, point).await;
    at_once(
        names
            .clone()
            .into_iter()
            .zip(doors.into_iter().cycle())
            .map(|(name, door)| async move { sells_again(door, &name, "key-2").await }),
    )
    .await;
    let books = line.until_lawful(&shoes.item).await;
    let sold = 2 * u64::from(most);
    assert_eq!((books.confirmed_units, books.most_by_one_buyer), (sold, 2), "died at {point}");

    let done = divide(&line, &shoes.item, to).await;
    assert_eq!((done.to, done.available), (count(to), 60 - sold), "died at {point}");
    let redis = line.snapshot(&shoes.item).await;
    assert_eq!((redis.buckets, redis.epoch), (count(to), done.epoch), "died at {point}");
    for name in &names {
        for door in doors {
            let mut buyer = Buyer::new(door, name.as_str());
            let again = buyer.buy_patiently("shoe", "key-1", 1).await;
            assert_eq!((again.status, again.text("status")), (200, "confirmed"), "{again:?}");
            let more = buyer.buy_patiently("shoe", "key-3", 1).await;
            more.assert_problem(409, "limit_reached", None);
        }
    }
    buys(doors[1], &who_lives_in(0, to, 1), "key-1", 2).await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, sold + 2, "died at {point}");
    line.stop_all().await;
}

/// Side by side, because each waits for the lease of its dead one; but not too many for the machine.
async fn dies_at_every_step(from: u16, to: u16) {
    for points in POINTS.chunks(4) {
        join_all(points.iter().map(|point| dies_at(point, from, to))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_to_more_buckets_may_die_at_every_step() {
    dies_at_every_step(2, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_to_fewer_buckets_may_die_at_every_step() {
    dies_at_every_step(5, 2).await;
}
