//! `read_records.lua`: what Redis has written down of requests.

use super::keys::Bucket;
use super::layouts::{AtHome, at_home};
use super::reply::{Words, one_each};
use super::{Stock, StockError};
use crate::domain::{BucketCount, BuyerId, ItemId, Record, RequestId};

impl Stock {
    /// Reads records, each in its buyer's home bucket; the answer is in their order.
    pub async fn read_records(
        &self,
        item: &ItemId,
        requests: &[(BuyerId, RequestId)],
    ) -> Result<Vec<Option<Record>>, StockError> {
        let ask = |bucket, buckets, part| self.read_at_home(bucket, buckets, part);
        self.at_homes(item, requests, |(buyer, _)| buyer, ask).await
    }

    async fn read_at_home(
        &self,
        bucket: Bucket,
        buckets: BucketCount,
        requests: Vec<&(BuyerId, RequestId)>,
    ) -> Result<AtHome<Vec<Option<Record>>>, StockError> {
        let mut call = self
            .scripts
            .read_records
            .call()
            .key(self.keys.sale(&bucket))
            .key(self.keys.unseen(&bucket))
            .arg(buckets);
        for (_, request_id) in &requests {
            call = call.key(self.keys.hold(&bucket, *request_id)).arg(request_id);
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        let replies = match at_home("read_records", &replies)? {
            AtHome::Answered(replies) => replies,
            AtHome::Moved(layout) => return Ok(AtHome::Moved(layout)),
        };
        one_each("read_records", replies, requests.len())?;
        let records = replies.iter().map(|reply| read(Words::of("read_records", reply)));
        Ok(AtHome::Answered(records.collect::<Result<_, _>>()?))
    }
}

fn read(mut words: Words<'_>) -> Result<Option<Record>, StockError> {
    Ok(match words.word()? {
        "none" => None,
        "record" => Some(Record {
            state: words.parse()?,
            reservation_id: words.reservation_id()?,
            is_unseen: words.word()? == "1",
        }),
        _ => return Err(words.malformed()),
    })
}
