//! When the ledger has gone back in time, its orders are still written down in Redis: they are
//! published again, under their own reservation ids, and decided once more.

use shared::backends::Backends;
use shared::config::limits::{BUCKETS_PER_ITEM, PUBLISH_BATCH};
use shared::contract::ReservationsPlaced;
use shared::domain::{EnvironmentId, ItemId, Reservation, partition};
use shared::ledger::{Ledger, LedgerError};
use shared::queue::{Outgoing, PublishOutcome};
use shared::stock::{Bucket, Stock, StockError};

/// Why not everything was published. What was is decided once, however often it comes.
#[derive(Debug, thiserror::Error)]
pub enum RepublishError {
    #[error("cannot publish orders again that the ledger has lost: {0:?}")]
    Publish(PublishOutcome),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Where messages go.
#[derive(Clone)]
pub struct Address {
    pub environment: EnvironmentId,
    pub partitions: u16,
}

/// Publishes reservations that are confirmed in Redis and unknown to the ledger. Returns how many.
pub(crate) async fn republish_confirmed(
    backends: &Backends,
    address: &Address,
    item: &ItemId,
) -> Result<u64, RepublishError> {
    let mut published = 0;
    let mut lost = Lost::of(item);
    while let Some(page) = lost.next_page(&backends.ledger, &backends.stock).await? {
        publish(backends, address, item, &page).await?;
        published += page.len() as u64;
    }
    Ok(published)
}

/// The reservations that are confirmed in Redis and unknown to the ledger, page by page.
pub(crate) struct Lost {
    /// Where to go on, bucket by bucket.
    todo: Vec<(Bucket, u64)>,
}

impl Lost {
    pub(crate) fn of(item: &ItemId) -> Self {
        Self { todo: Bucket::all(item, BUCKETS_PER_ITEM).map(|bucket| (bucket, 0)).collect() }
    }

    /// `None` after the last page; a page may be empty.
    pub(crate) async fn next_page(
        &mut self,
        ledger: &Ledger,
        stock: &Stock,
    ) -> Result<Option<Vec<Reservation>>, RepublishError> {
        let Some((bucket, cursor)) = self.todo.pop() else { return Ok(None) };
        let page = stock.scan_confirmed(&bucket, cursor).await?;
        self.todo.extend(page.next.map(|next| (bucket, next)));
        let requests: Vec<_> = page.reservations.iter().map(|one| one.request_id).collect();
        let known = ledger.find_orders(&requests).await?;
        let is_lost = |one: &Reservation| !known.contains_key(&one.request_id);
        Ok(Some(page.reservations.into_iter().filter(is_lost).collect()))
    }
}

/// Publishes reservations of an item, and waits for the broker to have them.
pub(crate) async fn publish(
    backends: &Backends,
    address: &Address,
    item: &ItemId,
    reservations: &[Reservation],
) -> Result<(), RepublishError> {
    let partition = partition(item, address.partitions);
    for reservations in reservations.chunks(PUBLISH_BATCH) {
        let reservations = reservations.to_vec();
        let placed = ReservationsPlaced { environment: address.environment, reservations };
        match backends.publisher.publish(Outgoing::reservations(partition, &placed)).await {
            PublishOutcome::Confirmed => {}
            outcome => return Err(RepublishError::Publish(outcome)),
        }
    }
    Ok(())
}
