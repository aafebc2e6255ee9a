//! Requests of one bucket gather into one call of `reserve`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shared::batch::{Batcher, NotHandled};
use shared::config::limits::{BUCKETS_PER_ITEM, FROZEN_WAIT, PURCHASES_WAITING, RESERVE_BATCH};
use shared::domain::ItemId;
use shared::stock::{Bucket, Layout, Refusal, ReserveReply, ReserveRequest, Reserved, Stock};

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
    batcher: Batcher<Bucket, ReserveRequest, Result<ReserveReply, NoReply>>,
}

/// What buckets last said of themselves.
#[derive(Default)]
struct Known {
    /// An item that is not here is asked under epoch 0, and says `moved`.
    layouts: HashMap<ItemId, Layout>,
    /// Since when a bucket has been found frozen.
    frozen: HashMap<Bucket, Instant>,
}

type Memory = Arc<Mutex<Known>>;

/// How soon a frozen bucket is asked again: corrections take some milliseconds.
const THAW_POLL: Duration = Duration::from_millis(5);

impl Reserving {
    pub(crate) fn new(stock: Stock) -> Self {
        let memory = Memory::default();
        let batcher = Batcher::new(RESERVE_BATCH, PURCHASES_WAITING, move |bucket, batch| {
            let (stock, memory) = (stock.clone(), Arc::clone(&memory));
            async move { reserve(&stock, &memory, &bucket, batch).await }
        });
        Self { batcher }
    }

    pub(crate) async fn reserve(
        &self,
        item: &ItemId,
        request: ReserveRequest,
    ) -> Result<ReserveReply, NoReply> {
        let bucket = Bucket::home(item, &request.buyer, BUCKETS_PER_ITEM);
        self.batcher.submit(bucket, request).await.unwrap_or_else(|not_handled| {
            Err(match not_handled {
                NotHandled::Full => NoReply::Overloaded,
                NotHandled::Abandoned => NoReply::Unknown,
            })
        })
    }
}

async fn reserve(
    stock: &Stock,
    memory: &Memory,
    bucket: &Bucket,
    requests: Vec<ReserveRequest>,
) -> Vec<Result<ReserveReply, NoReply>> {
    match until_thawed(stock, memory, bucket, &requests).await {
        Ok(replies) => replies.into_iter().map(Ok).collect(),
        Err(no_reply) => vec![Err(no_reply); requests.len()],
    }
}

/// Asks again while the bucket is frozen: under the same reservation ids, so that nothing is taken
/// twice. Everybody waits from the first sight of the freeze, so that those who queue up behind it
/// do not wait one after the other.
async fn until_thawed(
    stock: &Stock,
    memory: &Memory,
    bucket: &Bucket,
    requests: &[ReserveRequest],
) -> Result<Vec<ReserveReply>, NoReply> {
    loop {
        let replies = ask(stock, memory, bucket, requests).await?;
        let is_frozen = replies.contains(&ReserveReply::Refused(Refusal::Frozen));
        let waited = {
            let mut known = memory.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_frozen {
                known.frozen.remove(bucket);
                return Ok(replies);
            }
            known.frozen.entry(bucket.clone()).or_insert_with(Instant::now).elapsed()
        };
        if waited >= FROZEN_WAIT {
            return Ok(replies);
        }
        tokio::time::sleep(THAW_POLL).await;
    }
}

/// Asks under the layout that was known last, then under the one that the bucket says it has.
async fn ask(
    stock: &Stock,
    memory: &Memory,
    bucket: &Bucket,
    requests: &[ReserveRequest],
) -> Result<Vec<ReserveReply>, NoReply> {
    let known = || memory.lock().unwrap_or_else(PoisonError::into_inner);
    let unread = Layout { epoch: 0, buckets: BUCKETS_PER_ITEM };
    let mut layout = known().layouts.get(&bucket.item).copied().unwrap_or(unread);
    for _ in 0..LAYOUTS_TRIED {
        match ask_again_once(stock, bucket, layout, requests).await? {
            Reserved::Answered(replies) => return Ok(replies),
            Reserved::NotReady => return Err(NoReply::NotReady),
            Reserved::Moved(current) => {
                known().layouts.insert(bucket.item.clone(), current);
                layout = current;
            }
        }
    }
    tracing::warn!(item = %bucket.item, "the layout keeps changing");
    Err(NoReply::NotTaken)
}

/// A layout changes once in a warm-up; more than this in a row is not a layout but a fault.
const LAYOUTS_TRIED: usize = 3;

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
    stock.reserve(bucket, layout, requests).await.map_err(|error| {
        tracing::warn!(%error, "whether stock is held is not known; a repeat finds out");
        NoReply::Unknown
    })
}
