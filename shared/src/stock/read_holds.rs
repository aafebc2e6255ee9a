//! `read_holds.lua`: the holds of a bucket that are not settled.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::HOLDS_PAGE;
use crate::domain::{BuyerId, OpenHold, Quantity, UnixMillis};

/// One page of holds, and the bucket's numbers at the same instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldsPage {
    /// Where the next page begins; `None` after the last.
    pub next: Option<u64>,
    pub epoch: u64,
    pub available: u64,
    pub confirmed_units: u64,
    pub restored_units: u64,
    /// When this was, by the clock of Redis.
    pub at: UnixMillis,
    /// A hold may be told on two pages.
    pub holds: Vec<OpenHold>,
}

impl Stock {
    /// Reads about [`HOLDS_PAGE`] holds; `None` when the item is not in this Redis. The first page
    /// begins at 0.
    pub async fn read_holds(
        &self,
        bucket: &Bucket,
        cursor: u64,
    ) -> Result<Option<HoldsPage>, StockError> {
        let call = self
            .scripts
            .read_holds
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.held(bucket))
            .key(self.keys.hold_prefix(bucket))
            .arg(cursor)
            .arg(HOLDS_PAGE);
        let replies: Vec<String> = self.connection.run(call).await?;
        let (head, replies) =
            replies.split_first().ok_or_else(|| StockError::malformed("read_holds", ""))?;
        let mut head = Words::of("read_holds", head);
        match head.word()? {
            "absent" => return Ok(None),
            "page" => {}
            _ => return Err(head.malformed()),
        }
        Ok(Some(HoldsPage {
            next: Some(head.parse()?).filter(|cursor| *cursor != 0),
            epoch: head.parse()?,
            available: head.parse()?,
            confirmed_units: head.parse()?,
            restored_units: head.parse()?,
            at: UnixMillis(head.parse()?),
            holds: replies.iter().map(|reply| read(reply)).collect::<Result<_, _>>()?,
        }))
    }
}

fn read(reply: &str) -> Result<OpenHold, StockError> {
    let mut words = Words::of("read_holds", reply);
    match words.word()? {
        "hold" => {}
        _ => return Err(words.malformed()),
    }
    let (request_id, reservation_id) = (words.parse()?, words.reservation_id()?);
    let buyer: BuyerId = words.parse()?;
    let quantity = Quantity::new(words.parse()?).map_err(|_| words.malformed())?;
    let reserved_at = UnixMillis(words.parse()?);
    Ok(OpenHold { request_id, reservation_id, buyer, quantity, reserved_at })
}
