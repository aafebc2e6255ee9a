//! `store.lua` and `bind_store.lua`: which store this Redis is.

use super::reply::Words;
use super::{Stock, StockError};
use crate::domain::StoreId;

/// What became of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindReply {
    /// This Redis is that store.
    Bound,
    /// It is another one, and stays so.
    Already(StoreId),
}

impl Stock {
    /// Which store this Redis is for this namespace; `None` when it has never been bound, or has
    /// lost its data.
    pub async fn store(&self) -> Result<Option<StoreId>, StockError> {
        let call = self.scripts.store.call().key(self.keys.store());
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("store", &reply);
        match words.word()? {
            "none" => Ok(None),
            "store" => words.parse().map(Some),
            _ => Err(words.malformed()),
        }
    }

    /// Makes this Redis the store that the ledger names from now on. `replaced` is what the ledger
    /// named until now: a Redis that still says so, because somebody was slow to bind it, follows.
    pub async fn bind_store(
        &self,
        store: StoreId,
        replaced: Option<StoreId>,
    ) -> Result<BindReply, StockError> {
        let replaced = replaced.map(|id| id.to_string()).unwrap_or_default();
        let call = self.scripts.bind_store.call().key(self.keys.store()).arg(store).arg(replaced);
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("bind_store", &reply);
        match words.word()? {
            "bound" => Ok(BindReply::Bound),
            "already" => words.parse().map(BindReply::Already),
            _ => Err(words.malformed()),
        }
    }
}
