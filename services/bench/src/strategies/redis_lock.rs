//! A lock in Redis for each item; under it the units are taken in Redis, and the order is written to
//! the database, while everybody else waits.
//!
//! The design that many begin with. It sells one purchase of an item at a time: the lock is held over
//! every round trip, the commit included.

use super::pre_deduct;
use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::Backends;

pub(super) async fn purchase(backends: &Backends, purchase: &Purchase) -> Result<Outcome, Trouble> {
    let lock = backends.locks.lock(&purchase.item).await?;
    let outcome = pre_deduct::purchase(backends, purchase).await;
    lock.release().await?;
    outcome
}
