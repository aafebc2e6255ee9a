//! How long work on many dead letters takes, and how much memory.

use std::time::{Duration, Instant};

use reconciler::letters::{Judge, ReplayOptions};
use shared::domain::{
    BucketCount, BuyerId, ItemId, Quantity, RequestId, Reservation, ReservationId,
};
use shared::ledger::{LetterFilter, LetterSort};
use shared::stock::{Bucket, Layout, ReserveReply, ReserveRequest, Reserved};

use crate::desk::{Desk, as_fast_as_it_goes};
use crate::line::{Line, sale};
use crate::until::until;

/// Requests in one call, and letters in one transaction.
const PAGE: u64 = 100;

/// Parks so many letters with their holds, lists them in several ways, plans and replays them all
/// while no consumer runs, and prints what it took.
pub async fn letters_bench(letters: u64) {
    let line = Line::new().await;
    let shoes = sale("shoe", letters);
    line.sell(&shoes).await;
    let desk = Desk::of(&line);
    let began = Instant::now();
    for first in (0..letters).step_by(PAGE as usize) {
        let held = hold_page(&line, &shoes.item, first..(first + PAGE).min(letters)).await;
        desk.park(&held).await;
    }
    line.ledger.meddle("ANALYZE dead_letters").await.expect("analysed");
    println!("parked {letters} letters in {:.1?}", began.elapsed());

    let any = LetterFilter::default;
    let text = format!("buyer-{}", letters - 7);
    let buyer = Some(text.parse().expect("a buyer"));
    for (what, filter) in [
        ("all", any()),
        ("one item", LetterFilter { item: Some(shoes.item.clone()), ..any() }),
        ("one buyer", LetterFilter { buyer, ..any() }),
        ("a text in the bytes", LetterFilter { text: Some(text), ..any() }),
        ("a reason that none has", LetterFilter { reason: Some("none".to_owned()), ..any() }),
    ] {
        for sort in [LetterSort::Newest, LetterSort::Attempts] {
            list(&desk, what, &filter, sort).await;
        }
    }
    let began = Instant::now();
    desk.backends.ledger.letters_by_error(&any(), 20).await.expect("counted");
    println!("stats: {:.1?}", began.elapsed());
    let began = Instant::now();
    let plan = desk.plan(&any()).await;
    println!("plan: {:.1?}, {:?}", began.elapsed(), plan.by_class);

    let before = memory_kib();
    let began = Instant::now();
    let options = ReplayOptions { wait: Duration::ZERO, ..as_fast_as_it_goes() };
    let report = desk.replay_as(&any(), &options).await;
    let took = began.elapsed();
    println!(
        "replay --rate 0: {} letters in {took:.1?}, {:.0} a second; at most {} MiB, {} MiB before",
        report.sent,
        report.sent as f64 / took.as_secs_f64(),
        memory_kib() / 1024,
        before / 1024,
    );
}

async fn list(desk: &Desk, what: &str, filter: &LetterFilter, sort: LetterSort) {
    let (ledger, stock) = (&desk.backends.ledger, &desk.backends.stock);
    let began = Instant::now();
    let page = ledger.list_letters(filter, sort, None, 50).await.expect("a page");
    let mut judge = Judge::open(ledger, stock).await.expect("a judge");
    let judged = judge.judge(page).await.expect("judged");
    println!("list, {what}, {sort:?}: {} letters in {:.1?}", judged.len(), began.elapsed());
}

async fn hold_page(line: &Line, item: &ItemId, numbers: std::ops::Range<u64>) -> Vec<Reservation> {
    let request = |number: u64| {
        let buyer: BuyerId = format!("buyer-{number}").parse().expect("a buyer");
        ReserveRequest {
            request_id: RequestId::derive(&buyer, item, &"1".parse().expect("a key")),
            reservation_id: ReservationId::mint(),
            buyer,
            quantity: Quantity::new(1).expect("one"),
        }
    };
    let requests: Vec<_> = numbers.map(request).collect();
    let bucket = Bucket { item: item.clone(), number: 0 };
    let layout = Layout { epoch: 1, buckets: BucketCount::ONE };
    let reserved =
        until("stock is taken", async || line.stock.reserve(&bucket, layout, &requests).await.ok())
            .await;
    let Reserved::Answered(replies) = reserved else { panic!("the layout is known") };
    let held = |reply| match reply {
        ReserveReply::Held(reservation) => reservation,
        other => panic!("stock is held: {other:?}"),
    };
    replies.into_iter().map(held).collect()
}

/// The most memory that this process has had so far, as Linux counts it.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = most.and_then(|most| most.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
