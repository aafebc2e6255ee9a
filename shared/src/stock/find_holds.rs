//! `find_holds.lua`: reads the holds of many requests of one item.

use super::keys::Bucket;
use super::layouts::{AtHome, at_home};
use super::reply::{Words, one_each};
use super::{FoundHold, Stock, StockError};
use crate::domain::{BucketCount, BuyerId, ItemId, Quantity, RequestId, UnixMillis};

/// A hold, with what only operators ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedHold {
    pub hold: FoundHold,
    pub reserved_at: UnixMillis,
    /// How often it was looked at since it became overdue.
    pub tries: u32,
}

impl Stock {
    /// Looks requests up, each in its buyer's home bucket; the answer is in their order.
    pub async fn find_holds(
        &self,
        item: &ItemId,
        requests: &[(BuyerId, RequestId)],
    ) -> Result<Vec<Option<WatchedHold>>, StockError> {
        let ask = |bucket, buckets, part: Vec<&(BuyerId, RequestId)>| {
            let requests = part.into_iter().map(|(_, request_id)| *request_id).collect();
            self.watch_at_home(bucket, buckets, requests)
        };
        self.at_homes(item, requests, |(buyer, _)| buyer, ask).await
    }

    /// Looks a request up in every bucket, for somebody who does not know its buyer.
    pub async fn search_hold(
        &self,
        item: &ItemId,
        request_id: RequestId,
    ) -> Result<Option<WatchedHold>, StockError> {
        let count = self.bucket_count(item).await?.unwrap_or(BucketCount::ONE);
        for bucket in Bucket::all(item, count) {
            match self.watch_at_home(bucket, count, vec![request_id]).await? {
                AtHome::Answered(holds) => {
                    if let Some(found) = holds.into_iter().flatten().next() {
                        return Ok(Some(found));
                    }
                }
                AtHome::Moved(_) => return Err(StockError::Unsteady { item: item.clone() }),
            }
        }
        Ok(None)
    }

    async fn watch_at_home(
        &self,
        bucket: Bucket,
        buckets: BucketCount,
        requests: Vec<RequestId>,
    ) -> Result<AtHome<Vec<Option<WatchedHold>>>, StockError> {
        let mut call = self.scripts.find_holds.call().key(self.keys.sale(&bucket)).arg(buckets);
        for request_id in &requests {
            call = call.key(self.keys.hold(&bucket, *request_id));
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        let replies = match at_home("find_holds", &replies)? {
            AtHome::Answered(replies) => replies,
            AtHome::Moved(layout) => return Ok(AtHome::Moved(layout)),
        };
        one_each("find_holds", replies, requests.len())?;
        let holds = replies.iter().map(|reply| read(Words::of("find_holds", reply)));
        Ok(AtHome::Answered(holds.collect::<Result<_, _>>()?))
    }
}

fn read(mut words: Words<'_>) -> Result<Option<WatchedHold>, StockError> {
    match words.word()? {
        "none" => return Ok(None),
        "found" => {}
        _ => return Err(words.malformed()),
    }
    let standing = words.standing()?;
    let (reservation_id, buyer) = (words.reservation_id()?, words.parse()?);
    let quantity = Quantity::new(words.parse()?).map_err(|_| words.malformed())?;
    let (reserved_at, tries) = (UnixMillis(words.parse()?), words.parse()?);
    let hold = FoundHold { reservation_id, buyer, quantity, standing };
    Ok(Some(WatchedHold { hold, reserved_at, tries }))
}
