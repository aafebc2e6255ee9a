//! `find_hold.lua`: reads one hold, and whether its bucket is live.

use super::keys::Bucket;
use super::layouts::AtHome;
use super::reply::Words;
use super::{Stock, StockError};
use crate::domain::{
    BucketCount, BuyerId, HoldStanding, ItemId, Quantity, RequestId, ReservationId,
};

/// What Redis knows of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldLookup {
    /// True when the item is open: a hold that is not here then does not exist.
    pub live: bool,
    pub hold: Option<FoundHold>,
}

/// One hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHold {
    pub reservation_id: ReservationId,
    pub buyer: BuyerId,
    pub quantity: Quantity,
    pub standing: HoldStanding,
}

impl Stock {
    /// Looks a request up in its buyer's home bucket.
    pub async fn find_hold(
        &self,
        item: &ItemId,
        buyer: &BuyerId,
        request_id: RequestId,
    ) -> Result<HoldLookup, StockError> {
        let ask = |bucket, buckets, _| self.find_at_home(bucket, buckets, request_id);
        let found = self.at_homes(item, &[buyer], |buyer| buyer, ask).await?;
        found.into_iter().next().ok_or_else(|| StockError::malformed("find_hold", ""))
    }

    async fn find_at_home(
        &self,
        bucket: Bucket,
        buckets: BucketCount,
        request_id: RequestId,
    ) -> Result<AtHome<Vec<HoldLookup>>, StockError> {
        let call = self
            .scripts
            .find_hold
            .call()
            .key(self.keys.sale(&bucket))
            .key(self.keys.hold(&bucket, request_id))
            .arg(buckets);
        let (head, reply): (String, String) = self.connection.run(call).await?;
        let mut head = Words::of("find_hold", &head);
        let live = match head.word()? {
            "live" => true,
            "not_live" => false,
            "moved" => return Ok(AtHome::Moved(head.layout()?)),
            _ => return Err(head.malformed()),
        };
        let mut words = Words::of("find_hold", &reply);
        let hold = match words.word()? {
            "none" => None,
            "found" => {
                let standing = words.standing()?;
                let (reservation_id, buyer) = (words.reservation_id()?, words.parse()?);
                let quantity = Quantity::new(words.parse()?).map_err(|_| words.malformed())?;
                Some(FoundHold { reservation_id, buyer, quantity, standing })
            }
            _ => return Err(words.malformed()),
        };
        Ok(AtHome::Answered(vec![HoldLookup { live, hold }]))
    }
}
