//! `restore.lua`: gives the stock of holds back that the ledger did not sell.

use super::keys::Bucket;
use super::layouts::{AtHome, at_home};
use super::reply::{Words, one_each};
use super::short_id::ShortId;
use super::{Stock, StockError};
use crate::config::limits::RECORD_RETENTION;
use crate::domain::{
    BucketCount, BuyerId, HoldState, ItemId, Quantity, RequestId, ReservationId, Verdict,
};
use crate::telemetry::metrics;

/// One hold whose stock may go back, and the ledger's word on its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreRequest {
    pub request_id: RequestId,
    pub reservation_id: ReservationId,
    pub buyer: BuyerId,
    /// For the tombstone of an unseen hold only; what goes back are the hold's own units.
    pub quantity: Quantity,
    pub epoch: u64,
    pub verdict: Verdict,
}

/// What became of one hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreReply {
    /// Its units went back now.
    Done,
    /// They had gone back before.
    Already,
    /// The record belongs to another reservation, or is confirmed.
    Conflict { state: HoldState, reservation_id: ReservationId },
    /// There was no hold; the verdict is written as a tombstone, no stock moved.
    Unseen,
}

impl Stock {
    /// Restores holds of one item, each in its buyer's home bucket; the replies are in their order.
    pub async fn restore(
        &self,
        item: &ItemId,
        requests: &[RestoreRequest],
    ) -> Result<Vec<RestoreReply>, StockError> {
        let ask = |bucket, buckets, part| self.restore_at_home(bucket, buckets, part);
        self.at_homes(item, requests, |request: &RestoreRequest| &request.buyer, ask).await
    }

    async fn restore_at_home(
        &self,
        bucket: Bucket,
        buckets: BucketCount,
        requests: Vec<&RestoreRequest>,
    ) -> Result<AtHome<Vec<RestoreReply>>, StockError> {
        let mut call = self
            .scripts
            .restore
            .call()
            .key(self.keys.sale(&bucket))
            .key(self.keys.buyers(&bucket))
            .key(self.keys.held(&bucket))
            .arg(buckets)
            .arg(RECORD_RETENTION.as_millis());
        for request in &requests {
            call = call
                .key(self.keys.hold(&bucket, request.request_id))
                .arg(request.request_id)
                .arg(ShortId(request.reservation_id))
                .arg(&request.buyer)
                .arg(request.quantity)
                .arg(request.epoch)
                .arg(&request.verdict);
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        let replies = match at_home("restore", &replies)? {
            AtHome::Answered(replies) => replies,
            AtHome::Moved(layout) => return Ok(AtHome::Moved(layout)),
        };
        one_each("restore", replies, requests.len())?;
        let replies = replies.iter().map(|reply| read(Words::of("restore", reply)));
        let replies = replies.collect::<Result<Vec<_>, _>>()?;
        let given_back = requests.iter().zip(&replies).map(|(one, reply)| match reply {
            RestoreReply::Done => one.quantity.units(),
            RestoreReply::Already | RestoreReply::Conflict { .. } | RestoreReply::Unseen => 0,
        });
        metrics::restored(&bucket.item, given_back.sum());
        Ok(AtHome::Answered(replies))
    }
}

fn read(mut words: Words<'_>) -> Result<RestoreReply, StockError> {
    Ok(match words.word()? {
        "done" => RestoreReply::Done,
        "already" => RestoreReply::Already,
        "conflict" => RestoreReply::Conflict {
            state: words.parse()?,
            reservation_id: words.reservation_id()?,
        },
        "unseen" => RestoreReply::Unseen,
        _ => return Err(words.malformed()),
    })
}
