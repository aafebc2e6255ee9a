//! `reserve.lua`: takes stock for a batch of requests of one bucket.

use super::keys::Bucket;
use super::layouts::Layout;
use super::reply::{Words, one_each};
use super::short_id::ShortId;
use super::{Stock, StockError};
use crate::domain::{
    BuyerId, HoldStanding, Quantity, RequestId, Reservation, ReservationId, UnixMillis,
};
use crate::telemetry::metrics;

/// One purchase that asks for stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReserveRequest {
    pub request_id: RequestId,
    /// Minted for this attempt; asking again after a lost reply uses the same one.
    pub reservation_id: ReservationId,
    pub buyer: BuyerId,
    pub quantity: Quantity,
}

/// What the bucket said to the whole batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// One reply for each request, in their order.
    Answered(Vec<ReserveReply>),
    /// This server may have forgotten sales, and has not been compared with the ledger since.
    NotReady,
    /// The caller's layout is old; nothing was looked at. Ask again with this one.
    Moved(Layout),
}

/// What the bucket said to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveReply {
    /// Stock is held under the reservation id that was sent.
    Held(Reservation),
    /// The request is known: its hold, under the *stored* reservation id, and how it stands.
    Repeat { reservation: Reservation, standing: HoldStanding },
    /// Nothing was taken.
    Refused(Refusal),
}

/// Why nothing was taken. Refusals are not stored: the same key may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    KeyReused,
    NotWarm,
    /// A correction is at work: ask again in a moment.
    Frozen,
    /// An operator has stopped the sale until further notice.
    Paused,
    NotOpen,
    Ended,
    LimitReached,
    SoldOut,
}

impl Stock {
    /// Takes stock for up to [`RESERVE_BATCH`](crate::config::limits::RESERVE_BATCH) requests.
    pub async fn reserve(
        &self,
        bucket: &Bucket,
        layout: Layout,
        requests: &[ReserveRequest],
    ) -> Result<Reserved, StockError> {
        let mut call = self
            .scripts
            .reserve
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.buyers(bucket))
            .key(self.keys.held(bucket))
            .arg(layout.epoch)
            .arg(layout.buckets)
            .arg(self.first_look.as_millis());
        for request in requests {
            call = call
                .key(self.keys.hold(bucket, request.request_id))
                .arg(ShortId(request.reservation_id))
                .arg(&request.buyer)
                .arg(request.quantity);
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        let reserved = read(bucket, requests, &replies)?;
        if let Reserved::Answered(replies) = &reserved {
            metrics::reserved(&bucket.item, replies.iter().map(taken).sum());
        }
        Ok(reserved)
    }
}

/// Units that a request took.
fn taken(reply: &ReserveReply) -> u64 {
    match reply {
        ReserveReply::Held(reservation) => reservation.quantity.units(),
        ReserveReply::Repeat { .. } | ReserveReply::Refused(_) => 0,
    }
}

fn read(
    bucket: &Bucket,
    requests: &[ReserveRequest],
    replies: &[String],
) -> Result<Reserved, StockError> {
    let (head, replies) =
        replies.split_first().ok_or_else(|| StockError::malformed("reserve", ""))?;
    let mut head = Words::of("reserve", head);
    match head.word()? {
        "ok" => {}
        "not_ready" => return Ok(Reserved::NotReady),
        "moved" => return Ok(Reserved::Moved(head.layout()?)),
        _ => return Err(head.malformed()),
    }
    one_each("reserve", replies, requests.len())?;
    let answers = requests
        .iter()
        .zip(replies)
        .map(|(request, reply)| read_one(bucket, request, Words::of("reserve", reply)));
    Ok(Reserved::Answered(answers.collect::<Result<_, _>>()?))
}

fn read_one(
    bucket: &Bucket,
    request: &ReserveRequest,
    mut words: Words<'_>,
) -> Result<ReserveReply, StockError> {
    let reservation = |reservation_id, epoch, reserved_at| Reservation {
        request_id: request.request_id,
        reservation_id,
        item: bucket.item.clone(),
        epoch,
        buyer: request.buyer.clone(),
        quantity: request.quantity,
        reserved_at: UnixMillis(reserved_at),
    };
    Ok(match words.word()? {
        "held" => {
            ReserveReply::Held(reservation(request.reservation_id, words.parse()?, words.parse()?))
        }
        "repeat" => {
            let standing = words.standing()?;
            let (reservation_id, epoch) = (words.reservation_id()?, words.parse()?);
            let reservation = reservation(reservation_id, epoch, words.parse()?);
            ReserveReply::Repeat { reservation, standing }
        }
        "key_reused" => ReserveReply::Refused(Refusal::KeyReused),
        "not_warm" => ReserveReply::Refused(Refusal::NotWarm),
        "frozen" => ReserveReply::Refused(Refusal::Frozen),
        "paused" => ReserveReply::Refused(Refusal::Paused),
        "not_open" => ReserveReply::Refused(Refusal::NotOpen),
        "ended" => ReserveReply::Refused(Refusal::Ended),
        "limit_reached" => ReserveReply::Refused(Refusal::LimitReached),
        "sold_out" => ReserveReply::Refused(Refusal::SoldOut),
        _ => return Err(words.malformed()),
    })
}
