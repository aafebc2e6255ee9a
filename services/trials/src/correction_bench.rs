//! How long buyers are kept waiting by a correction, and Redis by a comparison. Measured, never
//! asserted: `trial correction-bench`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reconciler::Mode;
use shared::domain::{BucketCount, ItemId, Reservation};
use shared::stock::{Bucket, Layout, Refusal, ReserveReply, ReserveRequest, Reserved};
use tokio::task::JoinHandle;

use crate::line::{Line, limited};
use crate::messages::reservation;
use crate::outside::Console;
use crate::stack::own_stack;

const CORRECTIONS: usize = 50;

/// In one call of `reserve`.
const AT_ONCE: usize = 100;

/// Prints what corrections with so many holds in flight cost buyers, and a comparison of so many buyers
/// Redis. On backends of its own: what Redis measures of itself is told to it.
pub async fn correction_bench(holds: usize, buyers: usize) {
    let stack = own_stack();
    let line = Line::on(stack.backend.endpoints()).await;
    print!("{}{}", corrections(&line, holds).await, stalls(&line, buyers).await);
}

async fn corrections(line: &Line, holds: usize) -> String {
    let sale = limited("bench-correction", 1_000_000, 9);
    line.sell(&sale).await;
    take(line, &sale.item, holds).await;
    let clerk = line.clerk().await;
    let (mut seen, mut whole) = (Vec::new(), Vec::new());
    for number in 0..CORRECTIONS {
        line.drift(&sale.item, if number % 2 == 0 { -7 } else { 7 });
        let watch = Watch::begin(line, &sale.item, number);
        let began = Instant::now();
        let reconciled = clerk.reconcile(&sale.item, Mode::Apply).await.expect("it is corrected");
        whole.push(began.elapsed());
        assert_eq!(reconciled.found.added.unsigned_abs(), 7);
        seen.push(watch.end().await);
    }
    format!(
        "{CORRECTIONS} corrections with {holds} holds in flight\n\
         frozen, as a buyer sees it:     {}\n\
         the whole of `reconcile`:       {}\n",
        spread(seen),
        spread(whole),
    )
}

/// Somebody who tries to buy all the time.
struct Watch {
    enough: Arc<AtomicBool>,
    watching: JoinHandle<Duration>,
}

impl Watch {
    fn begin(line: &Line, item: &ItemId, number: usize) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (is_over, stock, item) = (Arc::clone(&enough), line.stock.clone(), item.clone());
        let watching = tokio::spawn(async move {
            let (mut longest, mut frozen_since) = (Duration::ZERO, None);
            while !is_over.load(Ordering::Relaxed) {
                // More than the limit: nothing is taken, but a freeze is told first.
                let request = wish(&item, &format!("watch-{number}"), 99);
                let asked = Instant::now();
                let bucket = Bucket { item: item.clone(), number: 0 };
                let layout = Layout { epoch: 1, buckets: BucketCount::ONE };
                let Ok(Reserved::Answered(replies)) =
                    stock.reserve(&bucket, layout, &[request]).await
                else {
                    continue;
                };
                if replies == [ReserveReply::Refused(Refusal::Frozen)] {
                    let since = *frozen_since.get_or_insert(asked);
                    longest = longest.max(since.elapsed());
                } else {
                    frozen_since = None;
                }
            }
            longest
        });
        Self { enough, watching }
    }

    async fn end(self) -> Duration {
        self.enough.store(true, Ordering::Relaxed);
        self.watching.await.expect("no panic")
    }
}

async fn stalls(line: &Line, buyers: usize) -> String {
    let sale = limited("bench-stall", 1_000_000, 9);
    line.sell(&sale).await;
    take(line, &sale.item, buyers.min(4_000)).await;
    for first in (4_000..buyers).step_by(AT_ONCE) {
        sold(line, &sale.item, first, (first + AT_ONCE).min(buyers)).await;
    }
    let redis = line.config.redis.clone();
    let mut console = Console::open(&redis);
    console.say(&["CONFIG", "SET", "latency-monitor-threshold", "1"]);
    console.say(&["CONFIG", "SET", "slowlog-log-slower-than", "100"]);
    console.say(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
    let idle = pinged(line, async || tokio::time::sleep(Duration::from_secs(2)).await).await;
    console.say(&["LATENCY", "RESET"]);
    console.say(&["SLOWLOG", "RESET"]);
    line.drift(&sale.item, -7);
    let clerk = line.clerk().await;
    let began = Instant::now();
    let busy = pinged(line, async || {
        let reconciled = clerk.reconcile(&sale.item, Mode::Apply).await.expect("it is corrected");
        assert_eq!(reconciled.found.added, 7);
    })
    .await;
    let took = began.elapsed();
    let latest = console.say(&["LATENCY", "LATEST"]).join(" ");
    let slow = console.say(&["EVAL", LONGEST_IN_SLOWLOG, "0"]).concat();
    format!(
        "a correction of an item with {buyers} buyers took {took:.2?}\n\
         longest PING meanwhile:         {busy:.2?} (without it: {idle:.2?})\n\
         longest command (SLOWLOG):      {slow}\n\
         LATENCY LATEST from 1 ms:       {}\n",
        if latest.is_empty() { "nothing" } else { &latest }
    )
}

const LONGEST_IN_SLOWLOG: &str = "local longest, what = 0, '' \
    for _, entry in ipairs(redis.call('SLOWLOG', 'GET', '100000')) do \
      if entry[3] > longest then longest, what = entry[3], entry[4][1] end \
    end \
    return longest .. ' µs, ' .. what";

/// The longest that a PING on another connection took while something was done.
async fn pinged(line: &Line, what: impl AsyncFnOnce()) -> Duration {
    let (enough, redis) = (Arc::new(AtomicBool::new(false)), line.config.redis.clone());
    let is_over = Arc::clone(&enough);
    let pinging = tokio::task::spawn_blocking(move || {
        let (mut console, mut longest) = (Console::open(&redis), Duration::ZERO);
        while !is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            console.say(&["PING"]);
            longest = longest.max(asked.elapsed());
        }
        longest
    });
    what().await;
    enough.store(true, Ordering::Relaxed);
    pinging.await.expect("no panic")
}

fn wish(item: &ItemId, buyer: &str, units: u64) -> ReserveRequest {
    let made = reservation(item, buyer, "key-1", units);
    ReserveRequest {
        request_id: made.request_id,
        reservation_id: made.reservation_id,
        buyer: made.buyer,
        quantity: made.quantity,
    }
}

/// Holds of so many buyers.
async fn take(line: &Line, item: &ItemId, buyers: usize) {
    for first in (0..buyers).step_by(AT_ONCE) {
        held(line, item, first, (first + AT_ONCE).min(buyers)).await;
    }
}

async fn held(line: &Line, item: &ItemId, first: usize, end: usize) -> Vec<Reservation> {
    let wishes: Vec<_> = (first..end).map(|n| wish(item, &format!("buyer-{n}"), 1)).collect();
    let (bucket, layout) =
        (Bucket { item: item.clone(), number: 0 }, Layout { epoch: 1, buckets: BucketCount::ONE });
    let reserved = line.stock.reserve(&bucket, layout, &wishes).await.expect("Redis");
    let Reserved::Answered(replies) = reserved else { panic!("the item is live: {reserved:?}") };
    let held = replies.into_iter().map(|reply| match reply {
        ReserveReply::Held(reservation) => reservation,
        other => panic!("stock is held: {other:?}"),
    });
    held.collect()
}

async fn sold(line: &Line, item: &ItemId, first: usize, end: usize) {
    let held = held(line, item, first, end).await;
    line.ledger.commit(&held).await.expect("decided");
    line.stock.confirm(item, &held).await.expect("Redis");
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|at| times[at]);
    format!("median {median:.1?}, least {least:.1?}, most {most:.1?}")
}
