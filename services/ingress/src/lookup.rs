//! How a purchase stands: Redis first, then the ledger.

use shared::config::limits::BUCKETS_PER_ITEM;
use shared::domain::{BuyerId, ItemId, OrderState, Quantity, RequestId};
use shared::ledger::{Ledger, LedgerError};
use shared::stock::{Bucket, Stock, StockError};

pub(crate) struct Lookup {
    pub(crate) stock: Stock,
    pub(crate) ledger: Ledger,
}

/// A purchase, as its buyer may see it.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) quantity: Quantity,
    /// `None` while the ledger has not been heard.
    pub(crate) decided: Option<OrderState>,
}

/// Why it cannot be said how a purchase stands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Neither knows it, but Redis is not warm: it may have forgotten.
    #[error("the item is not warmed up, so Redis may have forgotten the purchase")]
    NotLive,
}

impl Lookup {
    /// The purchase, if this buyer has it. Somebody else's is not found.
    pub(crate) async fn find(
        &self,
        item: &ItemId,
        buyer: &BuyerId,
        request_id: RequestId,
    ) -> Result<Option<Standing>, LookupError> {
        let bucket = Bucket::home(item, buyer, BUCKETS_PER_ITEM);
        // Without Redis nothing is said, although the ledger may know more: what it has decided and
        // Redis has not heard of yet would look undecided again as soon as Redis is back.
        let lookup = self.stock.find_hold(&bucket, request_id).await?;
        let hold = lookup.hold.map(|hold| {
            let standing = Standing { quantity: hold.quantity, decided: hold.standing.decided() };
            (hold.buyer == *buyer).then_some(standing)
        });
        // A Redis that may have forgotten something may also have forgotten that it was decided.
        let is_final = matches!(&hold, Some(None) | Some(Some(Standing { decided: Some(_), .. })));
        if let Some(standing) = hold.clone().filter(|_| lookup.live || is_final) {
            return Ok(standing);
        }
        if let Some(order) = self.ledger.find_order(request_id).await? {
            let same = order.item == *item && order.buyer == *buyer;
            let standing = Standing { quantity: order.quantity, decided: Some(order.state) };
            return Ok(same.then_some(standing));
        }
        match hold {
            Some(standing) => Ok(standing),
            None if lookup.live => Ok(None),
            None => Err(LookupError::NotLive),
        }
    }
}
