//! `UPDATE … WHERE available >= n`, and the order, in one transaction for each request.
//!
//! The database alone, at its best: one statement and one round trip. What is left to pay is one
//! commit a request, and the queue for the row of a hot item.

use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::Backends;

pub(super) async fn purchase(backends: &Backends, purchase: &Purchase) -> Result<Outcome, Trouble> {
    backends.database.sell_if_available(purchase).await
}
