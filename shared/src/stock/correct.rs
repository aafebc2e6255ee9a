//! `correct.lua`, `stamp.lua`: make a bucket agree with the ledger, and say that it does.

use super::freeze::Freeze;
use super::keys::Bucket;
use super::reply::Words;
use super::snapshot::Incarnation;
use super::{Stock, StockError};
use crate::domain::{BuyerId, UnixMillis};

/// What a frozen bucket differs from the ledger by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// Of the bucket that was compared.
    pub epoch: u64,
    /// To add to what is available.
    pub units: i64,
    /// Orders that were confirmed without a hold until then are part of the difference.
    pub compared_until: UnixMillis,
    /// To add to the confirmed units that were counted: less than 0 when the ledger lacks orders for
    /// good.
    pub confirmed_units: i64,
    /// To add to the totals of up to [`TOTALS_PAGE`](crate::config::limits::TOTALS_PAGE) buyers.
    pub buyers: Vec<(BuyerId, i64)>,
}

/// How a correction went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorrectReply {
    /// So many units were added: never so few that less than 0 would be available.
    Corrected { added: i64 },
    /// This correction was made before, and added so many.
    Already { added: i64 },
    /// The item is not in this Redis.
    Absent,
    /// The bucket was built anew.
    Moved { epoch: u64 },
    /// A later holder of the lock was here.
    Stale { fence: u64 },
    /// The freeze is over, so that units may have been sold since.
    Lapsed,
}

/// How the stamping of a bucket went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampReply {
    /// The bucket sells within its window.
    Stamped,
    Absent,
    Moved {
        epoch: u64,
    },
    Stale {
        fence: u64,
    },
    /// This is another server by now.
    Other,
}

impl Stock {
    /// Adds a difference once: asking again under the same freeze changes nothing.
    pub async fn correct(
        &self,
        bucket: &Bucket,
        freeze: Freeze,
        correction: &Correction,
    ) -> Result<CorrectReply, StockError> {
        let mut call = self
            .scripts
            .correct
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.buyers(bucket))
            .key(self.keys.unseen(bucket))
            .arg(freeze.fence)
            .arg(freeze.token)
            .arg(correction.epoch)
            .arg(correction.units)
            .arg(correction.compared_until.0)
            .arg(correction.confirmed_units);
        for (buyer, units) in &correction.buyers {
            call = call.arg(buyer).arg(units);
        }
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("correct", &reply);
        Ok(match words.word()? {
            "corrected" => CorrectReply::Corrected { added: words.parse()? },
            "already" => CorrectReply::Already { added: words.parse()? },
            "absent" => CorrectReply::Absent,
            "moved" => CorrectReply::Moved { epoch: words.parse()? },
            "stale" => CorrectReply::Stale { fence: words.parse()? },
            "lapsed" => CorrectReply::Lapsed,
            _ => return Err(words.malformed()),
        })
    }

    /// Writes down that a bucket of this epoch agrees with the ledger on this server.
    pub async fn stamp(
        &self,
        bucket: &Bucket,
        fence: u64,
        epoch: u64,
        compared_on: &Incarnation,
    ) -> Result<StampReply, StockError> {
        let call = self
            .scripts
            .stamp
            .call()
            .key(self.keys.sale(bucket))
            .arg(fence)
            .arg(epoch)
            .arg(&compared_on.0);
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("stamp", &reply);
        Ok(match words.word()? {
            "stamped" => StampReply::Stamped,
            "absent" => StampReply::Absent,
            "moved" => StampReply::Moved { epoch: words.parse()? },
            "stale" => StampReply::Stale { fence: words.parse()? },
            "other" => StampReply::Other,
            _ => return Err(words.malformed()),
        })
    }
}
