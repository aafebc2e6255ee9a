//! `find_hold.lua`: reads one hold, and whether its bucket is live.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::domain::{BuyerId, HoldStanding, Quantity, RequestId, ReservationId};

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
        bucket: &Bucket,
        request_id: RequestId,
    ) -> Result<HoldLookup, StockError> {
        let call = self
            .scripts
            .find_hold
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.hold(bucket, request_id));
        let (head, reply): (String, String) = self.connection.run(call).await?;
        let live = match head.as_str() {
            "live" => true,
            "not_live" => false,
            _ => return Err(StockError::malformed("find_hold", &head)),
        };
        let mut words = Words::of("find_hold", &reply);
        let hold = match words.word()? {
            "none" => None,
            "found" => {
                let standing = words.standing()?;
                let (reservation_id, buyer) = (words.parse()?, words.parse()?);
                let quantity = Quantity::new(words.parse()?).map_err(|_| words.malformed())?;
                Some(FoundHold { reservation_id, buyer, quantity, standing })
            }
            _ => return Err(words.malformed()),
        };
        Ok(HoldLookup { live, hold })
    }
}
