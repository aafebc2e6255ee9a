//! `claim_overdue.lua`: hands over holds that are due for a look.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::{CLAIM_BATCH, LONGEST_LOOK_PAUSE};
use crate::domain::{Quantity, Reservation, UnixMillis};

/// A hold that nobody has finished in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    pub reservation: Reservation,
    /// How often it has been handed over, this time included.
    pub tries: u32,
}

impl Stock {
    /// Up to [`CLAIM_BATCH`] holds of a bucket that are due. Each is handed to one caller only,
    /// until its next look: after the first pause again, then twice as long each time.
    pub async fn claim_overdue(&self, bucket: &Bucket) -> Result<Vec<Overdue>, StockError> {
        let call = self
            .scripts
            .claim_overdue
            .call()
            .key(self.keys.held(bucket))
            .key(self.keys.hold_prefix(bucket))
            .arg(CLAIM_BATCH)
            .arg(self.first_look.as_millis())
            .arg(LONGEST_LOOK_PAUSE.as_millis());
        let replies: Vec<String> = self.connection.run(call).await?;
        replies.iter().filter_map(|reply| read(bucket, reply).transpose()).collect()
    }
}

fn read(bucket: &Bucket, reply: &str) -> Result<Option<Overdue>, StockError> {
    let mut words = Words::of("claim_overdue", reply);
    match words.word()? {
        "overdue" => {}
        "gone" => return Ok(None),
        _ => return Err(words.malformed()),
    }
    Ok(Some(Overdue {
        reservation: Reservation {
            request_id: words.parse()?,
            reservation_id: words.parse()?,
            item: bucket.item.clone(),
            epoch: words.parse()?,
            buyer: words.parse()?,
            quantity: Quantity::new(words.parse()?).map_err(|_| words.malformed())?,
            reserved_at: UnixMillis(words.parse()?),
        },
        tries: words.parse()?,
    }))
}
