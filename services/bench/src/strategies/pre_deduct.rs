//! Take the units in Redis first, then let the database decide while the buyer waits. What it does not
//! sell is given back.
//!
//! Redis turns the losers away cheaply. Each winner still costs a transaction of its own, and a process
//! that dies between the two steps loses the units for good: nobody knows of them.

use super::counter::Taking;
use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::Backends;

pub(super) async fn purchase(backends: &Backends, purchase: &Purchase) -> Result<Outcome, Trouble> {
    if backends.counter.deduct(purchase).await? == Taking::SoldOut {
        return Ok(Outcome::SoldOut);
    }
    let sold = backends.database.sell_if_available(purchase).await;
    if !matches!(sold, Ok(Outcome::Confirmed | Outcome::Repeated)) {
        backends.counter.restore(purchase).await?;
    }
    sold
}
