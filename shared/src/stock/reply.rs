//! Reads the replies of scripts: words with a space between them.

use std::str::FromStr;

use super::error::StockError;
use super::layouts::Layout;
use super::short_id::ShortId;
use crate::domain::{
    HoldStanding, HoldState, ItemId, Quantity, Reservation, ReservationId, UnixMillis,
};

/// The words of one reply.
pub(super) struct Words<'a> {
    script: &'static str,
    reply: &'a str,
    words: std::str::Split<'a, char>,
}

impl<'a> Words<'a> {
    pub(super) fn of(script: &'static str, reply: &'a str) -> Self {
        Self { script, reply, words: reply.split(' ') }
    }

    /// The next word, as it is.
    pub(super) fn word(&mut self) -> Result<&'a str, StockError> {
        self.words.next().ok_or_else(|| self.malformed())
    }

    /// The next word, read as a number or an id.
    pub(super) fn parse<T: FromStr>(&mut self) -> Result<T, StockError> {
        self.word()?.parse().map_err(|_| self.malformed())
    }

    /// The next word, where `-` is nothing.
    pub(super) fn optional<T: FromStr>(&mut self) -> Result<Option<T>, StockError> {
        match self.word()? {
            "-" => Ok(None),
            word => word.parse().map(Some).map_err(|_| self.malformed()),
        }
    }

    /// The next word, read as a reservation id.
    pub(super) fn reservation_id(&mut self) -> Result<ReservationId, StockError> {
        self.parse().map(|ShortId(id)| id)
    }

    /// The next two words: a hold's state and verdict, where `-` is no verdict.
    pub(super) fn standing(&mut self) -> Result<HoldStanding, StockError> {
        match (self.parse()?, self.word()?) {
            (HoldState::Held, _) => Ok(HoldStanding::Held),
            (HoldState::Confirmed, _) => Ok(HoldStanding::Confirmed),
            (HoldState::Restored, verdict) => {
                verdict.parse().map(HoldStanding::Restored).map_err(|_| self.malformed())
            }
        }
    }

    /// The next two words: the epoch and the number of buckets of an item.
    pub(super) fn layout(&mut self) -> Result<Layout, StockError> {
        Ok(Layout { epoch: self.parse()?, buckets: self.parse()? })
    }

    /// The next words: request id, reservation id, epoch, buyer, quantity, when it was reserved.
    pub(super) fn reservation(&mut self, item: &ItemId) -> Result<Reservation, StockError> {
        Ok(Reservation {
            request_id: self.parse()?,
            reservation_id: self.reservation_id()?,
            item: item.clone(),
            epoch: self.parse()?,
            buyer: self.parse()?,
            quantity: Quantity::new(self.parse()?).map_err(|_| self.malformed())?,
            reserved_at: UnixMillis(self.parse()?),
        })
    }

    pub(super) fn malformed(&self) -> StockError {
        StockError::malformed(self.script, self.reply)
    }
}

/// Checks that a batch got as many replies as it had requests.
pub(super) fn one_each(
    script: &'static str,
    replies: &[String],
    requests: usize,
) -> Result<(), StockError> {
    if replies.len() == requests {
        Ok(())
    } else {
        let reply = format!("{} replies to {requests} requests", replies.len());
        Err(StockError::Malformed { script, reply })
    }
}
