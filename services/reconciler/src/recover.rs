//! After Redis has restarted or failed over: what it may have forgotten is brought back from the
//! ledger, then the item sells again. Nobody can reserve it meanwhile.

use shared::config::limits::{HOLDS_RECOVERED, SETTLE_BATCH};
use shared::crash;
use shared::domain::{
    BuyerId, HoldState, ItemId, Order, OrderState, RequestId, Reservation, UnixMillis,
};
use shared::ledger::{DecidedOrder, Ledger};
use shared::stock::{
    Bucket, ConfirmReply, ItemLock, RestoreReply, RestoreRequest, StampReply, Stock, StockError,
};

use crate::compare::compare;
use crate::correct::{Corrector, Mode};
use crate::suspects::suspects;
use crate::warm::{Seen, WarmError};

/// Settles what the ledger has decided, corrects stock and totals, and stamps the buckets. Returns
/// the units that were added.
pub(crate) async fn recover(
    ledger: &Ledger,
    stock: &Stock,
    lock: &ItemLock,
    seen: &Seen,
) -> Result<i64, WarmError> {
    let item = lock.item();
    settle_all(ledger, stock, lock).await?;
    crash::point("recover.settled");
    let look = compare(ledger, stock, item, &[], HOLDS_RECOVERED).await?;
    let suspects = suspects(ledger, stock, item, &look).await?;
    let corrector =
        Corrector { ledger, stock, lock, mode: Mode::Apply, most_holds: HOLDS_RECOVERED };
    let corrected = corrector.correct(&suspects).await?;
    crash::point("recover.corrected");
    for (bucket, seen) in Bucket::all(item, seen.item.buckets).zip(seen.buckets.iter().flatten()) {
        lock.check()?;
        match stock.stamp(&bucket, lock.fence(), seen.epoch, &seen.incarnation).await? {
            StampReply::Stamped => {}
            StampReply::Other | StampReply::Absent => {
                return Err(WarmError::Restarted(item.clone()));
            }
            StampReply::Moved { epoch } => {
                return Err(WarmError::Overtaken { item: item.clone(), epoch });
            }
            StampReply::Stale { .. } => return Err(lock.lost_to_another().into()),
        }
    }
    Ok(corrected.added)
}

/// Tells Redis every decision of the ledger: records that it has forgotten are written again, holds
/// that were settled before are settled again. Both are done once, whoever else does it.
async fn settle_all(ledger: &Ledger, stock: &Stock, lock: &ItemLock) -> Result<(), WarmError> {
    let item = lock.item();
    let mut after: Option<(BuyerId, RequestId)> = None;
    loop {
        lock.check()?;
        let page = ledger.list_orders(item, after.as_ref(), SETTLE_BATCH).await?;
        let Some(DecidedOrder { order, .. }) = page.last() else { return Ok(()) };
        after = Some((order.buyer.clone(), order.request_id));
        settle(stock, item, &page).await?;
    }
}

async fn settle(stock: &Stock, item: &ItemId, orders: &[DecidedOrder]) -> Result<(), StockError> {
    let (confirmed, refused): (Vec<&DecidedOrder>, Vec<&DecidedOrder>) =
        orders.iter().partition(|one| one.order.state == OrderState::Confirmed);
    let mut surplus = Vec::new();
    let reservations: Vec<_> = confirmed.iter().copied().map(reservation).collect();
    if !reservations.is_empty() {
        let replies = stock.confirm(item, &reservations).await?;
        for (one, reply) in confirmed.iter().zip(replies) {
            if let ConfirmReply::Conflict { state: HoldState::Held, reservation_id } = reply {
                surplus.push(RestoreRequest { reservation_id, ..restore_request(one) });
            }
        }
    }
    let requests: Vec<_> = refused.iter().copied().map(restore_request).collect();
    if !requests.is_empty() {
        let replies = stock.restore(item, &requests).await?;
        for (one, reply) in refused.iter().zip(replies) {
            if let RestoreReply::Conflict { state: HoldState::Held, reservation_id } = reply {
                surplus.push(RestoreRequest { reservation_id, ..restore_request(one) });
            }
        }
    }
    // Held under another reservation than the one that was decided: its units go back.
    if !surplus.is_empty() {
        stock.restore(item, &surplus).await?;
    }
    Ok(())
}

fn reservation(one: &DecidedOrder) -> Reservation {
    let Order { request_id, reservation_id, item, buyer, quantity, .. } = one.order.clone();
    let reserved_at = one.reserved_at.unwrap_or(UnixMillis(0));
    Reservation { request_id, reservation_id, item, epoch: one.epoch, buyer, quantity, reserved_at }
}

fn restore_request(one: &DecidedOrder) -> RestoreRequest {
    let verdict = one.order.verdict();
    let Order { request_id, reservation_id, buyer, quantity, .. } = one.order.clone();
    RestoreRequest { request_id, reservation_id, buyer, quantity, epoch: one.epoch, verdict }
}
