//! `read_records.lua`: what Redis has written down of requests.

use super::keys::Bucket;
use super::reply::{Words, one_each};
use super::{Stock, StockError};
use crate::domain::{Record, RequestId};

impl Stock {
    /// Reads up to [`SETTLE_BATCH`](crate::config::limits::SETTLE_BATCH) records, in the order of
    /// the requests.
    pub async fn read_records(
        &self,
        bucket: &Bucket,
        requests: &[RequestId],
    ) -> Result<Vec<Option<Record>>, StockError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self.scripts.read_records.call().key(self.keys.unseen(bucket));
        for request_id in requests {
            call = call.key(self.keys.hold(bucket, *request_id)).arg(request_id);
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        one_each("read_records", &replies, requests.len())?;
        replies.iter().map(|reply| read(Words::of("read_records", reply))).collect()
    }
}

fn read(mut words: Words<'_>) -> Result<Option<Record>, StockError> {
    Ok(match words.word()? {
        "none" => None,
        "record" => Some(Record {
            state: words.parse()?,
            reservation_id: words.parse()?,
            is_unseen: words.word()? == "1",
        }),
        _ => return Err(words.malformed()),
    })
}
