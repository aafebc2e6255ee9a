//! `find_holds.lua`: reads the holds of many requests of one bucket.

use super::keys::Bucket;
use super::reply::{Words, one_each};
use super::{FoundHold, Stock, StockError};
use crate::domain::{Quantity, RequestId, UnixMillis};

/// A hold, with what only operators ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedHold {
    pub hold: FoundHold,
    pub reserved_at: UnixMillis,
    /// How often it was looked at since it became overdue.
    pub tries: u32,
}

impl Stock {
    /// Looks up to [`SETTLE_BATCH`](crate::config::limits::SETTLE_BATCH) requests up in one bucket;
    /// the answer is in their order.
    pub async fn find_holds(
        &self,
        bucket: &Bucket,
        requests: &[RequestId],
    ) -> Result<Vec<Option<WatchedHold>>, StockError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self.scripts.find_holds.call().key(self.keys.sale(bucket));
        for request_id in requests {
            call = call.key(self.keys.hold(bucket, *request_id));
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        one_each("find_holds", &replies, requests.len())?;
        replies.iter().map(|reply| read(Words::of("find_holds", reply))).collect()
    }
}

fn read(mut words: Words<'_>) -> Result<Option<WatchedHold>, StockError> {
    match words.word()? {
        "none" => return Ok(None),
        "found" => {}
        _ => return Err(words.malformed()),
    }
    let standing = words.standing()?;
    let (reservation_id, buyer) = (words.parse()?, words.parse()?);
    let quantity = Quantity::new(words.parse()?).map_err(|_| words.malformed())?;
    let (reserved_at, tries) = (UnixMillis(words.parse()?), words.parse()?);
    let hold = FoundHold { reservation_id, buyer, quantity, standing };
    Ok(Some(WatchedHold { hold, reserved_at, tries }))
}
