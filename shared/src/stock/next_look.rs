//! `next_look.lua`: when a hold that is not settled is looked at next.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::domain::{BuyerId, ItemId, RequestId, UnixMillis};

impl Stock {
    /// When the reconciler looks next at a hold that was just found; `None` when it is settled, or not
    /// there any more.
    pub async fn next_look(
        &self,
        item: &ItemId,
        buyer: &BuyerId,
        request_id: RequestId,
    ) -> Result<Option<UnixMillis>, StockError> {
        let bucket = Bucket::home(item, buyer, self.layout(item).buckets);
        let call = self.scripts.next_look.call().key(self.keys.held(&bucket)).arg(request_id);
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("next_look", &reply);
        Ok(match words.word()? {
            "due" => Some(UnixMillis(words.parse()?)),
            "none" => None,
            _ => return Err(words.malformed()),
        })
    }
}
