//! After the last unit: losers are told so, winners are known, and what comes back is sold.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use shared::domain::{HoldStanding, Reservation};
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, sale};
use trials::messages::{Post, hold};
use trials::until::{PATIENCE, Waiting};

use super::{buys, decide, selling, who_lives_in};

const BUCKETS: u16 = 16;

/// How soon a unit that is back may be bought.
const ON_SALE_WITHIN: Duration = Duration::from_secs(2);

/// Everybody who lives in these buckets, one for each.
fn names(buckets: std::ops::Range<u16>) -> Vec<String> {
    buckets.map(|bucket| who_lives_in(bucket, BUCKETS, 0)).collect()
}

/// Fresh buyers of one home ask one after the other, until one of them gets the unit; when that was.
async fn somebody_gets_it(door: SocketAddr, home: u16, round: usize) -> Instant {
    let waiting = Waiting::for_at_most(PATIENCE);
    for number in 1.. {
        let mut buyer = Buyer::new(door, who_lives_in(home, BUCKETS, 1_000 * round + number));
        let answer = buyer.buy("shoe", "key-1", 1).await;
        if answer.is_accepted() {
            return Instant::now();
        }
        if answer.status != 503 {
            answer.assert_problem(409, "sold_out", None);
        }
        waiting.a_moment("somebody gets the unit").await;
    }
    unreachable!("somebody gets it, or the wait is over");
}

/// Asks for a hold's unit back; the last moment at which it was not back yet.
async fn comes_back(line: &Line, post: &Post, held: &Reservation) -> Instant {
    post.compensate(held).await;
    let waiting = Waiting::for_at_most(PATIENCE);
    let mut not_yet = Instant::now();
    loop {
        let asked_at = Instant::now();
        let found = line.stock.find_hold(&held.item, &held.buyer, held.request_id).await;
        let hold = found.expect("an answer").hold.expect("a hold");
        match hold.standing {
            HoldStanding::Held => not_yet = asked_at,
            HoldStanding::Restored(_) => return not_yet,
            HoldStanding::Confirmed => panic!("nobody sells it: {hold:?}"),
        }
        waiting.a_moment("the unit is back").await;
    }
}

/// Losers who press the button again and again, and are told the same.
async fn lose(door: SocketAddr, losers: std::ops::Range<usize>) {
    for number in losers {
        let mut loser = Buyer::new(door, format!("loser-{number}"));
        for _ in 0..3 {
            let answer = loser.buy_patiently("shoe", "key-1", 1).await;
            answer.assert_problem(409, "sold_out", None);
        }
    }
}

/// Winners who repeat their keys, and are never told that too few are left.
async fn win_again(door: SocketAddr, winners: Vec<String>, times: usize) {
    for name in winners {
        let mut winner = Buyer::new(door, name);
        for _ in 0..times {
            let again = winner.buy_patiently("shoe", "key-1", 1).await;
            assert!(again.is_accepted() && again.is_replayed(), "{}: {again:?}", winner.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_winner_who_tries_again_is_never_told_sold_out() {
    let shoes = sale("shoe", BUCKETS.into());
    let (mut line, doors) = selling(&shoes, BUCKETS).await;
    let winners = names(0..BUCKETS);
    for (name, door) in winners.iter().zip(doors.into_iter().cycle()) {
        let accepted = Buyer::new(door, name.as_str()).buy_patiently("shoe", "key-1", 1).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
    }
    // First while nothing is decided, then when everything is.
    for is_decided in [false, true] {
        if is_decided {
            decide(&mut line);
            line.until_settled(&shoes.item).await;
        }
        let crowd = doors.into_iter().flat_map(|door| {
            let winners = winners.clone();
            let losing = tokio::spawn(lose(door, 0..40));
            [losing, tokio::spawn(win_again(door, winners, 10))]
        });
        for done in crowd.collect::<Vec<_>>() {
            done.await.expect("everybody is told what is true");
        }
    }
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (BUCKETS.into(), Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_comes_back_is_sold_soon_at_every_ingress() {
    let shoes = sale("shoe", BUCKETS.into());
    let (mut line, doors) = selling(&shoes, BUCKETS).await;
    decide(&mut line);
    let (ghosts, winners) = (names(0..4), names(4..BUCKETS));
    let mut held = Vec::new();
    for name in &ghosts {
        held.push(hold(&line, &shoes.item, name, "key-1").await);
    }
    at_once(winners.clone().into_iter().map(|name| async move {
        buys(doors[0], &name, "key-1", 1).await;
    }))
    .await;
    let post = Post::of(&line).await;
    for (round, held) in held.iter().enumerate() {
        let door = doors[round % 2];
        at_once(doors.map(|door| lose(door, 0..10))).await;
        let winning = doors.map(|door| tokio::spawn(win_again(door, winners.clone(), 3)));
        // The unit comes back to another bucket than theirs.
        let buying = tokio::spawn(somebody_gets_it(door, BUCKETS - 1, round));
        let not_yet = comes_back(&line, &post, held).await;
        let sold_at = buying.await.expect("no panic");
        let took = sold_at.saturating_duration_since(not_yet);
        assert!(took < ON_SALE_WITHIN, "round {round}: {took:?}");
        for winner in winning {
            winner.await.expect("winners are known");
        }
    }
    let books = line.assert_law(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (BUCKETS.into(), Some(0)));
    line.stop_all().await;
}
