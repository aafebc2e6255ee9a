//! Requests of one bucket gather into one call of `reserve`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use shared::batch::{Batcher, NotHandled};
use shared::config::limits::{BUCKETS_PER_ITEM, PURCHASES_WAITING, RESERVE_BATCH};
use shared::domain::ItemId;
use shared::stock::{Bucket, Layout, ReserveReply, ReserveRequest, Reserved, Stock};

/// Why a request got no reply from its bucket.
#[derive(Debug, Clone)]
pub(crate) enum NoReply {
    /// Nothing was taken.
    NotTaken,
    /// Stock may be held under the reservation id; only the same key can tell.
    Unknown,
    /// Too much is waiting already; nothing was taken.
    Overloaded,
}

/// Takes stock, batch by batch.
pub(crate) struct Reserving {
    batcher: Batcher<Bucket, ReserveRequest, Result<ReserveReply, NoReply>>,
}

/// The layouts that buckets last said they have. An item that is not here is asked under epoch 0,
/// and says `moved`.
type Layouts = Arc<Mutex<HashMap<ItemId, Layout>>>;

impl Reserving {
    pub(crate) fn new(stock: Stock) -> Self {
        let layouts = Layouts::default();
        let batcher = Batcher::new(RESERVE_BATCH, PURCHASES_WAITING, move |bucket, batch| {
            let (stock, layouts) = (stock.clone(), Arc::clone(&layouts));
            async move { reserve(&stock, &layouts, &bucket, batch).await }
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
    layouts: &Layouts,
    bucket: &Bucket,
    requests: Vec<ReserveRequest>,
) -> Vec<Result<ReserveReply, NoReply>> {
    match ask(stock, layouts, bucket, &requests).await {
        Ok(replies) => replies.into_iter().map(Ok).collect(),
        Err(no_reply) => vec![Err(no_reply); requests.len()],
    }
}

/// Asks under the layout that was known last, then under the one that the bucket says it has.
async fn ask(
    stock: &Stock,
    layouts: &Layouts,
    bucket: &Bucket,
    requests: &[ReserveRequest],
) -> Result<Vec<ReserveReply>, NoReply> {
    let layouts = || layouts.lock().unwrap_or_else(PoisonError::into_inner);
    let unread = Layout { epoch: 0, buckets: BUCKETS_PER_ITEM };
    let mut layout = layouts().get(&bucket.item).copied().unwrap_or(unread);
    for _ in 0..LAYOUTS_TRIED {
        match ask_again_once(stock, bucket, layout, requests).await? {
            Reserved::Answered(replies) => return Ok(replies),
            Reserved::Moved(current) => {
                layouts().insert(bucket.item.clone(), current);
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
