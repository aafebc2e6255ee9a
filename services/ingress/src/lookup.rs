//! How a purchase stands: Redis first, then the ledger.

use shared::domain::{BuyerId, ItemId, OrderState, Quantity, RequestId};
use shared::ledger::{Ledger, LedgerError};
use shared::stock::{Stock, StockError};

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

/// A purchase that one of the two knows.
struct Found {
    /// False when it is somebody else's.
    is_theirs: bool,
    standing: Standing,
}

impl Found {
    fn told(&self) -> Option<Standing> {
        self.is_theirs.then(|| self.standing.clone())
    }
}

impl Lookup {
    /// The purchase, if this buyer has it. Somebody else's is not found.
    pub(crate) async fn find(
        &self,
        item: &ItemId,
        buyer: &BuyerId,
        request_id: RequestId,
    ) -> Result<Option<Standing>, LookupError> {
        // Without Redis nothing is said, although the ledger may know more: what it has decided and
        // Redis has not heard of yet would look undecided again as soon as Redis is back.
        let lookup = self.stock.find_hold(item, buyer, request_id).await?;
        let hold = lookup.hold.map(|hold| Found {
            is_theirs: hold.buyer == *buyer,
            standing: Standing { quantity: hold.quantity, decided: hold.standing.decided() },
        });
        // A Redis that may have forgotten something may also have forgotten that it was decided.
        let is_sure = |hold: &Found| lookup.live || hold.standing.decided.is_some();
        if let Some(hold) = hold.as_ref().filter(|hold| is_sure(hold)) {
            return Ok(hold.told());
        }
        if let Some(order) = self.ledger.find_order(request_id).await? {
            let standing = Standing { quantity: order.quantity, decided: Some(order.state) };
            let is_theirs = order.item == *item && order.buyer == *buyer;
            return Ok(Found { is_theirs, standing }.told());
        }
        match hold {
            Some(hold) => Ok(hold.told()),
            None if lookup.live => Ok(None),
            None => Err(LookupError::NotLive),
        }
    }
}
