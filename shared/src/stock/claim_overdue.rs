//! `claim_overdue.lua`: how a bucket stands, and its holds that are due for a look.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::{CLAIM_BATCH, LONGEST_LOOK_PAUSE};
use crate::domain::{BucketStanding, Reservation};

/// A hold that nobody has finished in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    pub reservation: Reservation,
    /// How often it has been handed over, this time included.
    pub tries: u32,
}

/// A bucket, and what is due there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// `None` when the item is not in this Redis.
    pub standing: Option<BucketStanding>,
    /// Only of a live bucket.
    pub overdue: Vec<Overdue>,
}

impl Stock {
    /// How a bucket stands, and, if it is live, up to [`CLAIM_BATCH`] of its holds that are due. Each is handed to one caller only,
    /// until its next look: after the first pause again, then twice as long each time.
    pub async fn claim_overdue(&self, bucket: &Bucket) -> Result<Claimed, StockError> {
        let call = self
            .scripts
            .claim_overdue
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.held(bucket))
            .key(self.keys.unseen(bucket))
            .key(self.keys.moving(bucket))
            .key(self.keys.hold_prefix(bucket))
            .arg(CLAIM_BATCH)
            .arg(self.first_look.as_millis())
            .arg(LONGEST_LOOK_PAUSE.as_millis());
        let replies: Vec<String> = self.connection.run(call).await?;
        let (head, replies) =
            replies.split_first().ok_or_else(|| StockError::malformed("claim_overdue", ""))?;
        let overdue = replies.iter().filter_map(|reply| read(bucket, reply).transpose());
        Ok(Claimed { standing: read_head(head)?, overdue: overdue.collect::<Result<_, _>>()? })
    }
}

fn read_head(reply: &str) -> Result<Option<BucketStanding>, StockError> {
    let mut words = Words::of("claim_overdue", reply);
    Ok(match words.word()? {
        "absent" => None,
        "present" => Some(BucketStanding {
            epoch: words.parse()?,
            buckets: words.parse()?,
            state: words.parse()?,
            is_stamped: words.word()? == "1",
            held: words.parse()?,
            unseen: words.parse()?,
            is_moving: words.word()? != "0",
        }),
        _ => return Err(words.malformed()),
    })
}

fn read(bucket: &Bucket, reply: &str) -> Result<Option<Overdue>, StockError> {
    let mut words = Words::of("claim_overdue", reply);
    match words.word()? {
        "overdue" => {}
        "gone" => return Ok(None),
        _ => return Err(words.malformed()),
    }
    Ok(Some(Overdue { reservation: words.reservation(&bucket.item)?, tries: words.parse()? }))
}
