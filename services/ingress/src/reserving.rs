//! Requests of one bucket gather into one call of `reserve`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shared::batch::{Batcher, NotHandled};
use shared::config::limits::{FROZEN_WAIT, GATHER_PASSES, PURCHASES_WAITING, RESERVE_BATCH};
use shared::domain::{BucketCount, ItemId, Shortage};
use shared::stock::{Bucket, Layout, Refusal, ReserveReply, ReserveRequest, Reserved, Stock};

use crate::gathering::{Gathered, Gathering};

/// Why a request got no reply from its bucket.
#[derive(Debug, Clone)]
pub(crate) enum NoReply {
    /// Nothing was taken.
    NotTaken,
    /// Stock may be held under the reservation id; only the same key can tell.
    Unknown,
    /// Redis may have forgotten sales; nothing was taken.
    NotReady,
    /// Too much is waiting already; nothing was taken.
    Overloaded,
}

/// Takes stock, batch by batch.
pub(crate) struct Reserving {
    stock: Stock,
    batcher: Batcher<Lane, ReserveRequest, Result<Told, NoReply>>,
    gathering: Gathering,
}

/// Requests that have the same home bucket, if the item has so many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lane {
    bucket: Bucket,
    buckets: BucketCount,
}

/// What a request was told.
#[derive(Debug, Clone)]
enum Told {
    Reply(ReserveReply),
    /// The item has another number of buckets by now, and the request perhaps another home; nothing
    /// was taken.
    Moved,
}

/// When a freeze was seen.
struct Sight {
    first: Instant,
    last: Instant,
}

impl Sight {
    /// For how long this freeze has been seen. Nobody has looked for long: this may be another one,
    /// and is waited for like the first.
    fn again(&mut self, now: Instant) -> Duration {
        if now.duration_since(self.last) > FROZEN_WAIT {
            self.first = now;
        }
        self.last = now;
        now.duration_since(self.first)
    }
}

/// Buckets that were found frozen.
type Memory = Arc<Mutex<HashMap<Bucket, Sight>>>;

/// How soon a frozen bucket is asked again: corrections take some milliseconds.
const THAW_POLL: Duration = Duration::from_millis(5);

impl Reserving {
    pub(crate) fn new(stock: Stock) -> Self {
        let (memory, inner) = (Memory::default(), stock.clone());
        let batcher = Batcher::new(RESERVE_BATCH, PURCHASES_WAITING, move |lane, batch| {
            let (stock, memory) = (inner.clone(), Arc::clone(&memory));
            async move { reserve(&stock, &memory, &lane, batch).await }
        });
        Self { batcher, gathering: Gathering::new(stock.clone()), stock }
    }

    /// Takes stock in the buyer's home bucket. One that is short gets what other buckets have: nobody
    /// is told that too few are left before all have been looked into.
    pub(crate) async fn reserve(
        &self,
        item: &ItemId,
        request: ReserveRequest,
    ) -> Result<ReserveReply, NoReply> {
        const SOLD_OUT: ReserveReply = ReserveReply::Refused(Refusal::SoldOut);
        let (mut reply, mut home) = self.at_home(item, &request).await?;
        for _ in 0..GATHER_PASSES {
            // The only bucket knows it all.
            if reply != SOLD_OUT || home.buckets == BucketCount::ONE {
                return Ok(reply);
            }
            let shortage = Shortage { home: home.bucket.number, units: request.quantity.units() };
            if self.gathering.gather(item, shortage).await? == Gathered::FewerLeft {
                return Ok(SOLD_OUT);
            }
            (reply, home) = self.at_home(item, &request).await?;
        }
        // Enough units were there in each pass; others were quicker.
        if reply == SOLD_OUT { Err(NoReply::Overloaded) } else { Ok(reply) }
    }

    /// Asks the home bucket under the layout that is known, and again under the one that is told. While a
    /// layout is being written, buckets tell different ones, and nobody gets anything for a moment.
    async fn at_home(
        &self,
        item: &ItemId,
        request: &ReserveRequest,
    ) -> Result<(ReserveReply, Lane), NoReply> {
        let lane = || {
            let buckets = self.stock.layout(item).buckets;
            Lane { bucket: Bucket::home(item, &request.buyer, buckets), buckets }
        };
        for _ in 0..LAYOUTS_TRIED {
            let lane = lane();
            let told = self.batcher.submit(lane.clone(), request.clone()).await;
            let told = told.unwrap_or_else(|not_handled| {
                Err(match not_handled {
                    NotHandled::Full => NoReply::Overloaded,
                    NotHandled::Abandoned => NoReply::Unknown,
                })
            });
            match told? {
                Told::Moved => {}
                Told::Reply(reply) => return Ok((reply, lane)),
            }
        }
        tracing::debug!(%item, "the layout keeps changing");
        Ok((ReserveReply::Refused(Refusal::Frozen), lane()))
    }
}

/// A layout changes once in a warm-up; after more than this in a row, the caller tries again later.
const LAYOUTS_TRIED: usize = 4;

async fn reserve(
    stock: &Stock,
    memory: &Memory,
    lane: &Lane,
    requests: Vec<ReserveRequest>,
) -> Vec<Result<Told, NoReply>> {
    let moved = || vec![Ok(Told::Moved); requests.len()];
    match until_thawed(stock, memory, lane, &requests).await {
        Ok(Some(replies)) => {
            if has_another_layout(stock, lane, &replies).await {
                return moved();
            }
            replies.into_iter().map(|reply| Ok(Told::Reply(reply))).collect()
        }
        Ok(None) => moved(),
        Err(no_reply) => vec![Err(no_reply); requests.len()],
    }
}

/// A bucket that is not warm may be one of an older layout that Redis has lost; the first one knows. One
/// of an earlier epoch only waits to be written: it is the last.
async fn has_another_layout(stock: &Stock, lane: &Lane, replies: &[ReserveReply]) -> bool {
    const NOT_WARM: ReserveReply = ReserveReply::Refused(Refusal::NotWarm);
    if lane.buckets == BucketCount::ONE || !replies.contains(&NOT_WARM) {
        return false;
    }
    let item = &lane.bucket.item;
    let first = stock.snapshot(&Bucket { item: item.clone(), number: 0 }).await;
    let Ok(Some(first)) = first else { return false };
    let is_another = first.buckets != lane.buckets && first.epoch >= stock.layout(item).epoch;
    if is_another {
        stock.learn(item, Layout { epoch: first.epoch, buckets: first.buckets });
    }
    is_another
}

/// Asks again while the bucket is frozen: under the same reservation ids, so that nothing is taken
/// twice. Everybody waits from the first sight of the freeze, so that those who queue up behind it
/// do not wait one after the other.
async fn until_thawed(
    stock: &Stock,
    memory: &Memory,
    lane: &Lane,
    requests: &[ReserveRequest],
) -> Result<Option<Vec<ReserveReply>>, NoReply> {
    loop {
        let replies = ask(stock, lane, requests).await?;
        let is_frozen = replies
            .as_ref()
            .is_some_and(|all| all.contains(&ReserveReply::Refused(Refusal::Frozen)));
        let waited = {
            let mut frozen = memory.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_frozen {
                frozen.remove(&lane.bucket);
                return Ok(replies);
            }
            let now = Instant::now();
            let sight = frozen.entry(lane.bucket.clone());
            sight.or_insert(Sight { first: now, last: now }).again(now)
        };
        if waited >= FROZEN_WAIT {
            return Ok(replies);
        }
        tokio::time::sleep(THAW_POLL).await;
    }
}

/// Asks under the epoch that was known last, then under the one that the bucket says it has. `None`
/// when it has another number of buckets as well.
async fn ask(
    stock: &Stock,
    lane: &Lane,
    requests: &[ReserveRequest],
) -> Result<Option<Vec<ReserveReply>>, NoReply> {
    let item = &lane.bucket.item;
    for _ in 0..LAYOUTS_TRIED {
        let layout = stock.layout(item);
        if layout.buckets != lane.buckets {
            return Ok(None);
        }
        match ask_again_once(stock, &lane.bucket, layout, requests).await? {
            Reserved::Answered(replies) => return Ok(Some(replies)),
            Reserved::NotReady => return Err(NoReply::NotReady),
            Reserved::Moved(current) => stock.learn(item, current),
        }
    }
    tracing::warn!(%item, "the epoch keeps changing");
    Err(NoReply::NotTaken)
}

/// A reply that was lost is asked for once more, with the same reservation ids: the script then
/// says what it did.
async fn ask_again_once(
    stock: &Stock,
    bucket: &Bucket,
    layout: Layout,
    requests: &[ReserveRequest],
) -> Result<Reserved, NoReply> {
    let lost = match stock.reserve(bucket, layout, requests).await {
        Ok(reserved) => return Ok(reserved),
        Err(error) if error.is_unknown() => error,
        Err(error) => {
            tracing::debug!(%error, "nothing was taken");
            return Err(NoReply::NotTaken);
        }
    };
    tracing::warn!(error = %lost, item = %bucket.item, requests = requests.len(), "asking Redis again");
    match stock.reserve(bucket, layout, requests).await {
        // This server may have forgotten what the first call did, or never have been asked.
        Ok(Reserved::NotReady) => Err(NoReply::Unknown),
        Ok(reserved) => Ok(reserved),
        Err(error) => {
            tracing::warn!(%error, "whether stock is held is not known; a repeat finds out");
            Err(NoReply::Unknown)
        }
    }
}
