//! A lock that somebody has: its lease, and the watchdog that renews it.
//!
//! The lease is counted by the holder's own clock, from when the last call that prolonged it was sent:
//! Redis began it later, so it never ends earlier than the holder believes. A holder that slept
//! through the end finds out before it does anything else.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::Stock;
use super::lock_scripts::Kept;
use crate::domain::ItemId;

/// The lock of an item, for as long as its lease is renewed. Dropped, it is renewed no more and
/// lapses; [`release`](Self::release) frees it at once.
pub struct ItemLock {
    stock: Stock,
    token: Uuid,
    fence: u64,
    lease: Arc<Lease>,
    /// Ends the watchdog with this value.
    _watchdog: DropGuard,
}

/// The lock is gone, and may be somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lost the lock of {item}: {why}; nothing more is written")]
pub struct LockLost {
    pub item: ItemId,
    pub why: &'static str,
}

const RAN_OUT: &str = "its lease ran out before it could be renewed";
const OUTPACED: &str = "a later holder has written under a higher fence";
const TAKEN_AWAY: &str = "Redis says that this process does not have it any more";

struct Lease {
    item: ItemId,
    length: Duration,
    /// From when `ends_after` counts.
    began: Instant,
    /// Microseconds.
    ends_after: AtomicU64,
    lost: CancellationToken,
    why: OnceLock<&'static str>,
}

impl ItemLock {
    pub(super) fn watched(
        stock: Stock,
        item: ItemId,
        token: Uuid,
        fence: u64,
        length: Duration,
        sent: Instant,
    ) -> Self {
        let lease = Arc::new(Lease {
            item,
            length,
            began: sent,
            ends_after: AtomicU64::new(0),
            lost: CancellationToken::new(),
            why: OnceLock::new(),
        });
        lease.prolong(sent);
        let given_up = CancellationToken::new();
        tokio::spawn(watch(stock.clone(), token, Arc::clone(&lease), given_up.clone()));
        Self { stock, token, fence, lease, _watchdog: given_up.drop_guard() }
    }

    /// Higher than that of every holder before.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    pub fn item(&self) -> &ItemId {
        &self.lease.item
    }

    /// How long it lasts after each renewal.
    pub fn lease(&self) -> Duration {
        self.lease.length
    }

    /// To be asked before every write.
    pub fn check(&self) -> Result<(), LockLost> {
        self.lease.check()
    }

    /// A later holder's fence was met: the lock is lost, whatever the lease says.
    pub fn lost_to_another(&self) -> LockLost {
        self.lease.lose(OUTPACED);
        LockLost { item: self.lease.item.clone(), why: OUTPACED }
    }

    /// Cancelled as soon as the lock is known to be lost.
    pub fn lost(&self) -> &CancellationToken {
        &self.lease.lost
    }

    /// Frees the lock. Should Redis not answer, it lapses.
    pub async fn release(self) {
        let Self { stock, token, lease, _watchdog, .. } = self;
        drop(_watchdog);
        let item = &lease.item;
        let mut released = stock.lock_release(item, token).await;
        if released.is_err() {
            // The connection may have been broken for long: nobody else has used it.
            released = stock.lock_release(item, token).await;
        }
        match released {
            Ok(Kept::Kept) => {}
            Ok(Kept::Lost) => tracing::debug!(%item, "the lock was lost before it was released"),
            Err(error) => {
                let lease = lease.length;
                tracing::warn!(%item, %error, ?lease, "cannot release a lock; it lapses by itself");
            }
        }
    }
}

impl fmt::Debug for ItemLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (item, fence) = (&self.lease.item, self.fence);
        f.debug_struct("ItemLock").field("item", item).field("fence", &fence).finish()
    }
}

impl Lease {
    /// Redis began a whole lease after `sent`.
    fn prolong(&self, sent: Instant) {
        let ends_after = sent.duration_since(self.began) + self.length;
        let micros = u64::try_from(ends_after.as_micros()).unwrap_or(u64::MAX);
        self.ends_after.store(micros, Ordering::SeqCst);
    }

    fn ends_at(&self) -> Instant {
        self.began + Duration::from_micros(self.ends_after.load(Ordering::SeqCst))
    }

    fn check(&self) -> Result<(), LockLost> {
        if !self.lost.is_cancelled() && Instant::now() < self.ends_at() {
            return Ok(());
        }
        self.lose(RAN_OUT);
        let why = self.why.get().copied().unwrap_or(RAN_OUT);
        Err(LockLost { item: self.item.clone(), why })
    }

    /// Once lost, it stays lost.
    fn lose(&self, why: &'static str) {
        if self.why.set(why).is_ok() {
            tracing::warn!(item = %self.item, why, "lost the lock of an item; its work stops");
        }
        self.lost.cancel();
    }
}

/// Renews the lease until it is lost or given up.
async fn watch(stock: Stock, token: Uuid, lease: Arc<Lease>, given_up: CancellationToken) {
    let mut pause = lease.length / 3;
    loop {
        tokio::select! {
            () = given_up.cancelled() => return,
            () = tokio::time::sleep_until(lease.ends_at().min(Instant::now() + pause).into()) => {}
        }
        if lease.check().is_err() {
            return;
        }
        let sent = Instant::now();
        // A renewal that hangs must not hide the end of the lease.
        let renewed = tokio::select! {
            () = given_up.cancelled() => return,
            () = tokio::time::sleep_until(lease.ends_at().into()) => return lease.lose(RAN_OUT),
            renewed = stock.lock_renew(&lease.item, token, lease.length) => renewed,
        };
        pause = match renewed {
            // What was found to have run out meanwhile stays lost.
            Ok(Kept::Kept) if lease.check().is_ok() => {
                lease.prolong(sent);
                lease.length / 3
            }
            Ok(Kept::Kept) => return,
            Ok(Kept::Lost) => return lease.lose(TAKEN_AWAY),
            Err(error) => {
                tracing::debug!(item = %lease.item, %error, "cannot renew a lock; trying again");
                lease.length / 20
            }
        };
    }
}
