//! `transfer_out.lua`, `transfer_in.lua`, `transfer_done.lua`, `transfer_void.lua`, `transfer_back.lua`,
//! `read_transfers.lua`: move units from one bucket of an item to another.
//!
//! Units leave a donor and are *moving*; they come to the bucket that is short; the donor forgets them.
//! Whoever finds a transfer unfinished asks the bucket that was short whether they came: if not, they
//! never will, and go back. So a transfer may die after every step, and every step may be repeated.

use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use super::keys::Bucket;
use super::layouts::Layout;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::{TRANSFER_BATCH, TRANSFER_DEADLINE, TRANSFER_RETENTION};
use crate::domain::UnixMillis;

/// Units on their way from one bucket to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    pub id: Uuid,
    /// Number of the bucket that was short.
    pub home: u16,
    pub units: u64,
    /// When they left, by the clock of Redis.
    pub started_at: UnixMillis,
}

/// Why a bucket takes no part in a transfer right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNow {
    /// The caller's layout is old; this is the one that the bucket has.
    Moved(Layout),
    /// It is not in this Redis, or not on sale.
    Absent,
    /// This server may have forgotten sales, and has not been compared with the ledger since.
    NotReady,
    /// A correction is at work.
    Frozen,
}

/// What a donor said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutReply {
    /// So many units have left; fewer than were wanted, if it had no more.
    Out(Transfer),
    /// It has none.
    Nothing,
    NotNow(NotNow),
}

/// What the bucket that was short said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InReply {
    /// The units are available there, now or since an earlier call.
    Came,
    /// They came too late, or somebody has given them back.
    Void,
    NotNow(NotNow),
}

impl Stock {
    /// Takes up to so many units from a donor. After a lost reply, do not ask again: what has left
    /// comes back by itself.
    pub async fn transfer_out(
        &self,
        donor: &Bucket,
        layout: Layout,
        home: u16,
        units: u64,
    ) -> Result<OutReply, StockError> {
        let id = Uuid::new_v4();
        let call = self
            .scripts
            .transfer_out
            .call()
            .key(self.keys.sale(donor))
            .key(self.keys.moving(donor))
            .arg(layout.epoch)
            .arg(layout.buckets)
            .arg(id)
            .arg(home)
            .arg(units);
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("transfer_out", &reply);
        Ok(match words.word()? {
            "out" => {
                let (units, started_at) = (words.parse()?, UnixMillis(words.parse()?));
                OutReply::Out(Transfer { id, home, units, started_at })
            }
            "none" => OutReply::Nothing,
            word => OutReply::NotNow(not_now(word, &mut words)?),
        })
    }

    /// Makes the units of a transfer available in the bucket that was short. May be repeated.
    pub async fn transfer_in(
        &self,
        home: &Bucket,
        layout: Layout,
        transfer: &Transfer,
    ) -> Result<InReply, StockError> {
        let call = self
            .scripts
            .transfer_in
            .call()
            .key(self.keys.sale(home))
            .key(self.keys.transfer(home, transfer.id))
            .arg(layout.epoch)
            .arg(layout.buckets)
            .arg(transfer.units)
            .arg(transfer.started_at.0)
            .arg(TRANSFER_DEADLINE.as_millis())
            .arg(TRANSFER_RETENTION.as_millis());
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("transfer_in", &reply);
        Ok(match words.word()? {
            "in" | "already" => InReply::Came,
            "void" => InReply::Void,
            word => InReply::NotNow(not_now(word, &mut words)?),
        })
    }

    /// Lets a donor forget a transfer whose units have come.
    pub async fn transfer_done(&self, donor: &Bucket, moved: &Transfer) -> Result<(), StockError> {
        let call = self.scripts.transfer_done.call().key(self.keys.moving(donor)).arg(moved);
        let reply: String = self.connection.run(call).await?;
        match reply.as_str() {
            "done" | "gone" => Ok(()),
            _ => Err(StockError::malformed("transfer_done", &reply)),
        }
    }

    /// Whether the units of a transfer have come to the bucket that was short. If not, they never
    /// will from now on.
    pub async fn transfer_came(
        &self,
        home: &Bucket,
        transfer: &Transfer,
    ) -> Result<bool, StockError> {
        let call = self
            .scripts
            .transfer_void
            .call()
            .key(self.keys.transfer(home, transfer.id))
            .arg(TRANSFER_RETENTION.as_millis());
        let reply: String = self.connection.run(call).await?;
        match reply.as_str() {
            "in" => Ok(true),
            "void" => Ok(false),
            _ => Err(StockError::malformed("transfer_void", &reply)),
        }
    }

    /// Gives a donor its units back, which have not [come](Self::transfer_came).
    pub async fn transfer_back(&self, donor: &Bucket, lost: &Transfer) -> Result<(), StockError> {
        let call = self
            .scripts
            .transfer_back
            .call()
            .key(self.keys.sale(donor))
            .key(self.keys.moving(donor))
            .arg(lost)
            .arg(lost.units);
        let reply: String = self.connection.run(call).await?;
        match reply.as_str() {
            "back" | "gone" => Ok(()),
            _ => Err(StockError::malformed("transfer_back", &reply)),
        }
    }

    /// Up to [`TRANSFER_BATCH`] transfers out of a bucket that began at least so long ago and are not
    /// finished, the oldest first.
    pub async fn read_transfers(
        &self,
        donor: &Bucket,
        age: Duration,
    ) -> Result<Vec<Transfer>, StockError> {
        let call = self
            .scripts
            .read_transfers
            .call()
            .key(self.keys.moving(donor))
            .arg(age.as_millis())
            .arg(TRANSFER_BATCH);
        let replies: Vec<String> = self.connection.run(call).await?;
        replies.iter().map(|reply| read(Words::of("read_transfers", reply))).collect()
    }
}

/// As it is written down in the donor's `moving`.
impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}|{}", self.id, self.home, self.units)
    }
}

fn read(mut words: Words<'_>) -> Result<Transfer, StockError> {
    match words.word()? {
        "transfer" => {}
        _ => return Err(words.malformed()),
    }
    Ok(Transfer {
        id: words.parse()?,
        home: words.parse()?,
        units: words.parse()?,
        started_at: UnixMillis(words.parse()?),
    })
}

fn not_now(word: &str, words: &mut Words<'_>) -> Result<NotNow, StockError> {
    Ok(match word {
        "moved" => NotNow::Moved(words.layout()?),
        "absent" => NotNow::Absent,
        "not_ready" => NotNow::NotReady,
        "frozen" => NotNow::Frozen,
        _ => return Err(words.malformed()),
    })
}
