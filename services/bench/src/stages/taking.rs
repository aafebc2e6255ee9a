//! Taking stock, and settling it, without HTTP and messages.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use shared::domain::Reservation;
use shared::domain::{BuyerId, IdempotencyKey, ItemId, Quantity, RequestId, ReservationId};
use shared::stock::{Bucket, ConfirmReply, Layout, ReserveReply, ReserveRequest, Reserved, Stock};

/// What replies came to.
#[derive(Debug)]
pub struct Taken {
    pub took: Duration,
    pub held: Vec<Reservation>,
    pub refused: u64,
}

/// Purchases of one unit each, every one by a buyer of its own. `tag` tells them from others.
pub fn requests(item: &ItemId, tag: &str, count: u64) -> anyhow::Result<Vec<ReserveRequest>> {
    let key: IdempotencyKey = "k".parse()?;
    let quantity = Quantity::new(1)?;
    let request = |number: u64| {
        let buyer: BuyerId = format!("b{tag}{number:010}").parse()?;
        let request_id = RequestId::derive(&buyer, item, &key);
        Ok(ReserveRequest { request_id, reservation_id: ReservationId::mint(), buyer, quantity })
    };
    (0..count).map(request).collect()
}

/// Takes stock in batches of one size, each within one bucket, with so many calls under way at once.
pub async fn take(
    stock: &Stock,
    item: &ItemId,
    layout: Layout,
    requests: &[ReserveRequest],
    (batch, at_once): (usize, usize),
) -> anyhow::Result<Taken> {
    let by_bucket = by_bucket(item, layout, requests);
    let batches: Vec<_> = by_bucket
        .iter()
        .flat_map(|(bucket, requests)| requests.chunks(batch).map(move |batch| (bucket, batch)))
        .collect();
    let begun = Instant::now();
    let replies: Vec<Vec<ReserveReply>> = stream::iter(batches)
        .map(|(bucket, batch)| take_batch(stock, bucket, layout, batch))
        .buffer_unordered(at_once)
        .try_collect()
        .await?;
    let took = begun.elapsed();
    let (mut held, mut refused) = (Vec::new(), 0);
    for reply in replies.into_iter().flatten() {
        match reply {
            ReserveReply::Held(reservation) => held.push(reservation),
            ReserveReply::Refused(_) => refused += 1,
            ReserveReply::Repeat { .. } => bail!("a new purchase was known already"),
        }
    }
    Ok(Taken { took, held, refused })
}

/// Confirms holds, as a consumer does after the ledger has decided.
pub async fn confirm(
    stock: &Stock,
    item: &ItemId,
    held: &[Reservation],
    batch: usize,
) -> anyhow::Result<()> {
    for batch in held.chunks(batch) {
        let replies = stock.confirm(item, batch).await?;
        let done = replies.iter().all(|reply| *reply == ConfirmReply::Done);
        ensure!(done, "a hold could not be confirmed: {replies:?}");
    }
    Ok(())
}

fn by_bucket(
    item: &ItemId,
    layout: Layout,
    requests: &[ReserveRequest],
) -> HashMap<Bucket, Vec<ReserveRequest>> {
    let mut by_bucket: HashMap<Bucket, Vec<ReserveRequest>> = HashMap::new();
    for request in requests {
        let bucket = Bucket::home(item, &request.buyer, layout.buckets);
        by_bucket.entry(bucket).or_default().push(request.clone());
    }
    by_bucket
}

async fn take_batch(
    stock: &Stock,
    bucket: &Bucket,
    layout: Layout,
    batch: &[ReserveRequest],
) -> anyhow::Result<Vec<ReserveReply>> {
    let reserved = stock.reserve(bucket, layout, batch).await.context("cannot take stock")?;
    match reserved {
        Reserved::Answered(replies) => Ok(replies),
        other => bail!("{} is not on sale as it was warmed up: {other:?}", bucket.item),
    }
}
