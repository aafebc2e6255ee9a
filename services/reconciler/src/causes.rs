//! Which requests make an item differ, for people who are about to correct it.

use shared::config::limits::SETTLE_BATCH;
use shared::domain::{BuyerId, Cause, ItemId, RequestId, cause};
use shared::ledger::{DecidedOrder, Ledger};
use shared::stock::Stock;

use crate::republish::{Lost, RepublishError};

/// More requests than this are counted, not kept.
const KEPT: usize = 1_000;

/// Requests that differ, and what they add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    /// The first of them, with the units that each adds to the difference.
    pub requests: Vec<(RequestId, Cause, i64)>,
    pub count: u64,
    /// Of all of them. What it lacks of the difference, no request explains.
    pub units: i64,
}

impl Causes {
    fn add(&mut self, request_id: RequestId, cause: Cause, quantity: u64) {
        let units = cause.units(quantity);
        self.count += 1;
        self.units += units;
        if self.requests.len() < KEPT {
            self.requests.push((request_id, cause, units));
        }
    }
}

/// Compares every order of an item with its record in Redis, page by page.
pub(crate) async fn causes(
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    ledger_is_behind: bool,
) -> Result<Causes, RepublishError> {
    let mut causes = Causes::default();
    let mut after: Option<(BuyerId, RequestId)> = None;
    loop {
        let page = ledger.list_orders(item, after.as_ref(), SETTLE_BATCH).await?;
        let Some(DecidedOrder { order, .. }) = page.last() else { break };
        after = Some((order.buyer.clone(), order.request_id));
        let request = |one: &DecidedOrder| (one.order.buyer.clone(), one.order.request_id);
        let requests: Vec<_> = page.iter().map(request).collect();
        let records = stock.read_records(item, &requests).await?;
        for (DecidedOrder { order, .. }, record) in page.iter().zip(records) {
            if let Some(cause) = cause(order, record.as_ref()) {
                causes.add(order.request_id, cause, order.quantity.units());
            }
        }
    }
    if ledger_is_behind {
        let mut lost = Lost::of(stock, item).await?;
        while let Some(page) = lost.next_page(ledger, stock).await? {
            for one in page {
                causes.add(one.request_id, Cause::LostByLedger, one.quantity.units());
            }
        }
    }
    Ok(causes)
}
