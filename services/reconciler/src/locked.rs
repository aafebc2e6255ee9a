//! Takes the lock of an item, and lets the ledger know before anything is done under it.

use std::time::{Duration, Instant};

use shared::config::limits::LOCK_WAIT;
use shared::domain::ItemId;
use shared::ledger::{Ledger, LedgerError};
use shared::stock::{ItemLock, LockError, LockRequest, Stock};

/// Why there is no lock. Nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum LockItemError {
    #[error("there is no item {0}; `lastunit item list` shows all")]
    UnknownItem(ItemId),
    #[error(
        "others kept claiming higher fences of {item} while it was being locked; run this again"
    )]
    Outrun { item: ItemId },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Takes the lock of an item under a fence that no earlier holder has had, even if Redis has lost its
/// count: the ledger keeps the highest, and refuses to let work begin under a lower one.
pub async fn lock_item(
    stock: &Stock,
    ledger: &Ledger,
    item: &ItemId,
    purpose: &str,
    lease: Duration,
) -> Result<ItemLock, LockItemError> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        let floor = ledger.fence(item).await?;
        let floor = floor.ok_or_else(|| LockItemError::UnknownItem(item.clone()))?;
        let wait = deadline.saturating_duration_since(Instant::now());
        let lock = stock.lock(item, &LockRequest { purpose, lease, wait, floor }).await?;
        let claimed = ledger.claim_fence(item, lock.fence()).await;
        if let Ok(true) = claimed {
            return Ok(lock);
        }
        lock.release().await;
        claimed?;
        if wait.is_zero() {
            return Err(LockItemError::Outrun { item: item.clone() });
        }
    }
}
