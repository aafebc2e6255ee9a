//! `confirm.lua`: makes holds final whose reservations the ledger has committed.

use super::keys::Bucket;
use super::layouts::{AtHome, at_home};
use super::reply::{Words, one_each};
use super::short_id::ShortId;
use super::{Stock, StockError};
use crate::config::limits::RECORD_RETENTION;
use crate::domain::{BucketCount, HoldState, ItemId, Reservation, ReservationId};
use crate::telemetry::metrics;

/// What became of one hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmReply {
    /// It is confirmed now.
    Done,
    /// It was confirmed before.
    Already,
    /// The record belongs to another reservation, or its stock went back.
    Conflict { state: HoldState, reservation_id: ReservationId },
    /// There was no hold; the record is written, no stock moved, a comparison is asked for.
    Unseen,
}

impl Stock {
    /// Confirms holds of one item, each in its buyer's home bucket; the replies are in their order.
    pub async fn confirm(
        &self,
        item: &ItemId,
        reservations: &[Reservation],
    ) -> Result<Vec<ConfirmReply>, StockError> {
        let ask = |bucket, buckets, part| self.confirm_at_home(bucket, buckets, part);
        self.at_homes(item, reservations, |one| &one.buyer, ask).await
    }

    async fn confirm_at_home(
        &self,
        bucket: Bucket,
        buckets: BucketCount,
        reservations: Vec<&Reservation>,
    ) -> Result<AtHome<Vec<ConfirmReply>>, StockError> {
        let mut call = self
            .scripts
            .confirm
            .call()
            .key(self.keys.sale(&bucket))
            .key(self.keys.held(&bucket))
            .key(self.keys.unseen(&bucket))
            .arg(buckets)
            .arg(RECORD_RETENTION.as_millis());
        for reservation in &reservations {
            call = call
                .key(self.keys.hold(&bucket, reservation.request_id))
                .arg(reservation.request_id)
                .arg(ShortId(reservation.reservation_id))
                .arg(&reservation.buyer)
                .arg(reservation.quantity)
                .arg(reservation.epoch)
                .arg(reservation.reserved_at.0);
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        let replies = match at_home("confirm", &replies)? {
            AtHome::Answered(replies) => replies,
            AtHome::Moved(layout) => return Ok(AtHome::Moved(layout)),
        };
        one_each("confirm", replies, reservations.len())?;
        let replies = replies.iter().map(|reply| read(Words::of("confirm", reply)));
        let replies = replies.collect::<Result<Vec<_>, _>>()?;
        let settled = reservations.iter().zip(&replies).map(|(one, reply)| match reply {
            ConfirmReply::Done | ConfirmReply::Unseen => one.quantity.units(),
            ConfirmReply::Already | ConfirmReply::Conflict { .. } => 0,
        });
        metrics::confirmed(&bucket.item, settled.sum());
        Ok(AtHome::Answered(replies))
    }
}

fn read(mut words: Words<'_>) -> Result<ConfirmReply, StockError> {
    Ok(match words.word()? {
        "done" => ConfirmReply::Done,
        "already" => ConfirmReply::Already,
        "conflict" => ConfirmReply::Conflict {
            state: words.parse()?,
            reservation_id: words.reservation_id()?,
        },
        "unseen" => ConfirmReply::Unseen,
        _ => return Err(words.malformed()),
    })
}
