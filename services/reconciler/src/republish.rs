//! When the ledger has gone back in time, its orders are still written down in Redis: they are
//! published again, under their own reservation ids, and decided once more.

use shared::backends::Backends;
use shared::config::limits::{PUBLISH_BATCH, SETTLE_DEADLINE};
use shared::contract::ReservationsPlaced;
use shared::domain::{EnvironmentId, ItemId, Reservation, partition};
use shared::ledger::{Ledger, LedgerError};
use shared::queue::{Outgoing, PublishOutcome};
use shared::stock::{Bucket, Stock, StockError};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Why not everything was published. What was is decided once, however often it comes.
#[derive(Debug, thiserror::Error)]
pub enum RepublishError {
    #[error("cannot publish reservations again: {0:?}")]
    Publish(PublishOutcome),
    #[error(
        "RabbitMQ did not take lost orders within {} s; see that it runs, then run this again",
        SETTLE_DEADLINE.as_secs()
    )]
    NotTaken,
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
    let mut lost = Lost::of(&backends.stock, item).await?;
    while let Some(page) = lost.next_page(&backends.ledger, &backends.stock).await? {
        publish_patiently(backends, address, item, &page).await?;
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
    pub(crate) async fn of(stock: &Stock, item: &ItemId) -> Result<Self, StockError> {
        let count = stock.bucket_count(item).await?;
        let buckets = count.into_iter().flat_map(|count| Bucket::all(item, count));
        Ok(Self { todo: buckets.map(|bucket| (bucket, 0)).collect() })
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

/// Waits for a broker that is away for a moment, such as for a connection that a command has just
/// begun to make.
async fn publish_patiently(
    backends: &Backends,
    address: &Address,
    item: &ItemId,
    reservations: &[Reservation],
) -> Result<(), RepublishError> {
    let never = CancellationToken::new();
    let published = backends.publisher.publish_all(messages(address, item, reservations), &never);
    match timeout(SETTLE_DEADLINE, published).await {
        Ok(_) => Ok(()),
        Err(_) => Err(RepublishError::NotTaken),
    }
}

/// Publishes reservations of an item, and waits for the broker to have them.
pub(crate) async fn publish(
    backends: &Backends,
    address: &Address,
    item: &ItemId,
    reservations: &[Reservation],
) -> Result<(), RepublishError> {
    for message in messages(address, item, reservations) {
        match backends.publisher.publish(message).await {
            PublishOutcome::Confirmed => {}
            outcome => return Err(RepublishError::Publish(outcome)),
        }
    }
    Ok(())
}

/// As many messages as it takes.
fn messages(address: &Address, item: &ItemId, reservations: &[Reservation]) -> Vec<Outgoing> {
    let partition = partition(item, address.partitions);
    let message = |reservations: &[Reservation]| {
        let (environment, reservations) = (address.environment, reservations.to_vec());
        Outgoing::reservations(partition, &ReservationsPlaced { environment, reservations })
    };
    reservations.chunks(PUBLISH_BATCH).map(message).collect()
}
