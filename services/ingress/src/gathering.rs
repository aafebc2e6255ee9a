//! A home bucket that is short gets units from the item's other buckets, before anybody is told that
//! too few are left.
//!
//! All buckets are looked into only if they have not just been: for a moment it is remembered how few
//! units were left. Whoever asks for no more than that is served as ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::future::join_all;
use shared::batch::{Batcher, NotHandled};
use shared::config::limits::{FEWER_LEFT_KEPT, GATHER_BATCH, PURCHASES_WAITING};
use shared::crash;
use shared::domain::{BucketCount, ItemId, Move, Shortage, gather};
use shared::stock::{Bucket, InReply, Layout, OutReply, Snapshot, Stock, StockError, Transfer};

use crate::reserving::NoReply;

/// What became of a purchase whose home bucket was short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathered {
    /// Fewer units are left in all buckets together than it asks for.
    FewerLeft,
    /// The home bucket may have enough by now.
    AskAgain,
}

/// Gathers units, item by item.
pub(crate) struct Gathering {
    batcher: Batcher<ItemId, Shortage, Result<Gathered, NoReply>>,
    memory: Memory,
}

/// How few units were left of items, and until when that is believed.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<HashMap<ItemId, (u64, Instant)>>>);

impl Memory {
    fn has_fewer(&self, item: &ItemId, units: u64) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(item).is_some_and(|(left, until)| *left < units && Instant::now() < *until)
    }

    /// `seen_at` is when the reading began: what came back since is not in it.
    fn remember(&self, item: &ItemId, left: u64, seen_at: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(item.clone(), (left, seen_at + FEWER_LEFT_KEPT));
    }
}

impl Gathering {
    pub(crate) fn new(stock: Stock) -> Self {
        let memory = Memory::default();
        let inner = memory.clone();
        let batcher = Batcher::new(GATHER_BATCH, PURCHASES_WAITING, move |item, shortages| {
            let (stock, memory) = (stock.clone(), inner.clone());
            async move { pass(&stock, &memory, &item, shortages).await }
        });
        Self { batcher, memory }
    }

    /// Brings units to the home bucket of a purchase, or finds that there are too few. Purchases that
    /// wait meanwhile share the next pass.
    pub(crate) async fn gather(
        &self,
        item: &ItemId,
        shortage: Shortage,
    ) -> Result<Gathered, NoReply> {
        if self.memory.has_fewer(item, shortage.units) {
            return Ok(Gathered::FewerLeft);
        }
        self.batcher.submit(item.clone(), shortage).await.unwrap_or_else(|not_handled| {
            Err(match not_handled {
                NotHandled::Full => NoReply::Overloaded,
                NotHandled::Abandoned => NoReply::NotTaken,
            })
        })
    }
}

/// One pass over all buckets.
async fn pass(
    stock: &Stock,
    memory: &Memory,
    item: &ItemId,
    shortages: Vec<Shortage>,
) -> Vec<Result<Gathered, NoReply>> {
    match serve(stock, memory, item, &shortages).await {
        Ok(gathered) => gathered.into_iter().map(Ok).collect(),
        Err(error) => {
            tracing::debug!(%error, %item, "no units can be gathered");
            vec![Err(NoReply::NotTaken); shortages.len()]
        }
    }
}

async fn serve(
    stock: &Stock,
    memory: &Memory,
    item: &ItemId,
    shortages: &[Shortage],
) -> Result<Vec<Gathered>, StockError> {
    let has_fewer = |shortage: &Shortage| memory.has_fewer(item, shortage.units);
    if !shortages.iter().all(has_fewer) {
        let seen_at = Instant::now();
        if let Some(seen) = look(stock, item).await? {
            let left = units_left(&seen);
            if shortages.iter().any(|shortage| shortage.units > left) {
                // Units that came to a bucket after it was read, from one that was read after they had
                // left, are in neither number; but they have been counted as transfers.
                let again = look(stock, item).await?;
                if again.is_some_and(|again| is_steady(&seen, &again)) {
                    memory.remember(item, left, seen_at);
                }
            }
            let available: Vec<_> = seen.iter().map(|bucket| bucket.available).collect();
            let moves = gather(&available, shortages);
            let layout = Layout { epoch: seen[0].epoch, buckets: seen[0].buckets };
            join_all(moves.iter().map(|planned| carry(stock, item, layout, planned))).await;
        }
    }
    let answer = |shortage| {
        if has_fewer(shortage) { Gathered::FewerLeft } else { Gathered::AskAgain }
    };
    Ok(shortages.iter().map(answer).collect())
}

/// Every bucket of an item that sells; `None` when some bucket does not: the home bucket says why.
async fn look(stock: &Stock, item: &ItemId) -> Result<Option<Vec<Snapshot>>, StockError> {
    let seen = stock.snapshots(item, BucketCount::ONE).await?;
    let Some(seen) = seen.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let layout = |bucket: &Snapshot| (bucket.epoch, bucket.buckets);
    let sells = |bucket: &Snapshot| {
        bucket.standing().is_live() && bucket.frozen.is_zero() && layout(bucket) == layout(&seen[0])
    };
    Ok(if seen.iter().all(sells) { Some(seen) } else { None })
}

fn units_left(seen: &[Snapshot]) -> u64 {
    seen.iter().map(|bucket| bucket.available + bucket.moving).sum()
}

/// True when no units came to any bucket between the two readings.
fn is_steady(seen: &[Snapshot], again: &[Snapshot]) -> bool {
    let transfers = |seen: &[Snapshot]| -> Vec<_> {
        seen.iter().map(|bucket| (bucket.epoch, bucket.transfers)).collect()
    };
    transfers(seen) == transfers(again)
}

/// Moves units, as many as the donor still has. Whatever fails on the way, the reconciler finishes.
async fn carry(stock: &Stock, item: &ItemId, layout: Layout, planned: &Move) {
    let donor = Bucket { item: item.clone(), number: planned.from };
    let home = Bucket { item: item.clone(), number: planned.to };
    let carried = async {
        let left = stock.transfer_out(&donor, layout, home.number, planned.units).await?;
        let OutReply::Out(transfer) = left else { return Ok(()) };
        crash::point("ingress.transfer_out");
        if bring(stock, &home, layout, &transfer).await? == InReply::Came {
            crash::point("ingress.transfer_in");
            stock.transfer_done(&donor, &transfer).await?;
        }
        Ok::<_, StockError>(())
    };
    if let Err(error) = carried.await {
        tracing::warn!(%error, %item, from = donor.number, to = home.number,
            "units that are moving between two buckets wait for the reconciler");
    }
}

/// A reply that was lost is asked for once more: the units come once.
async fn bring(
    stock: &Stock,
    home: &Bucket,
    layout: Layout,
    transfer: &Transfer,
) -> Result<InReply, StockError> {
    match stock.transfer_in(home, layout, transfer).await {
        Err(error) if error.is_unknown() => stock.transfer_in(home, layout, transfer).await,
        reply => reply,
    }
}
