//! The lock of an item: guards work of several steps. Nothing on the purchase path takes it; there
//! each script is a step of its own.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::lock_lease::ItemLock;
use super::lock_scripts::{Acquired, LockHolder, acquired, one_word};
use super::{Stock, StockError};
use crate::config::limits::LOCK_POLL;
use crate::domain::ItemId;

/// What somebody wants an item's lock for.
#[derive(Debug, Clone, Copy)]
pub struct LockRequest<'a> {
    /// Told to everybody who finds it busy, as one word.
    pub purpose: &'a str,
    /// How long the lock lasts unless it is renewed; renewing is not the caller's work.
    pub lease: Duration,
    /// How long to wait for others.
    pub wait: Duration,
    /// The highest fence that the ledger knows: Redis may have lost its count.
    pub floor: u64,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "{item} is locked: {holder}; try again when it is done, or when its lease has ended if its \
         process is gone"
    )]
    Busy { item: ItemId, holder: LockHolder },
    #[error(
        "only {answered} of {wanted} replicas had the lock of {item} in time, so it was given back: \
         see that they run and follow, or lower redis.replicas"
    )]
    Replicas { item: ItemId, wanted: u8, answered: u8 },
    #[error(transparent)]
    Stock(#[from] StockError),
}

impl Stock {
    /// Takes the lock of an item; whoever has waited longest is the next to have it. Redis not
    /// answering is waited for like anybody else.
    ///
    /// The future may be dropped: what it has taken lapses with its lease.
    pub async fn lock(
        &self,
        item: &ItemId,
        request: &LockRequest<'_>,
    ) -> Result<ItemLock, LockError> {
        let deadline = Instant::now() + request.wait;
        // The same for all attempts: after a lost reply, the next one finds the lock its own.
        let token = Uuid::new_v4();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let stays = !left.is_zero();
            // The lease counts from here: Redis cannot have begun it earlier.
            let sent = Instant::now();
            match self.take(item, token, request, stays).await {
                Ok(Acquired::Taken { fence }) => {
                    let (stock, item) = (self.clone(), item.clone());
                    return Ok(ItemLock::watched(stock, item, token, fence, request.lease, sent));
                }
                Ok(Acquired::Busy(holder)) if !stays => {
                    return Err(LockError::Busy { item: item.clone(), holder });
                }
                Err(error) if !stays || matches!(error, LockError::Replicas { .. }) => {
                    // Whether or not it was taken: nobody shall wait for a lease that nobody uses.
                    let _ = self.lock_release(item, token).await;
                    return Err(error);
                }
                Ok(Acquired::Busy(_)) | Err(_) => tokio::time::sleep(pause().min(left)).await,
            }
        }
    }

    async fn take(
        &self,
        item: &ItemId,
        token: Uuid,
        request: &LockRequest<'_>,
        stays: bool,
    ) -> Result<Acquired, LockError> {
        let call = || self.lock_acquire(item, token, request, (own_name(), stays));
        let reply: String = self.connection.run(call()).await?;
        let taken = acquired(&reply)?;
        let wanted = self.replicas;
        if wanted == 0 || matches!(taken, Acquired::Busy(_)) {
            return Ok(taken);
        }
        // Taken again, which writes it again, by a connection that may wait for the replicas.
        let (reply, answered): (String, u8) =
            self.connection.run_replicated(call(), wanted).await?;
        match acquired(&reply)? {
            Acquired::Taken { .. } if answered < wanted => {
                Err(LockError::Replicas { item: item.clone(), wanted, answered })
            }
            taken => Ok(taken),
        }
    }
}

/// Host and process, as others find them named.
fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
        let host = host.or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
        one_word(&format!("{}/{}", host.trim(), std::process::id()))
    })
}

/// Before the next attempt: jittered, so that those who wait do not ask in step.
fn pause() -> Duration {
    let jitter = u32::from(Uuid::new_v4().as_bytes()[0]);
    LOCK_POLL * 3 / 4 + LOCK_POLL / 2 * jitter / 255
}
