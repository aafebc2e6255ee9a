//! `scan_confirmed.lua`: the confirmed records of a bucket.

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::HOLDS_PAGE;
use crate::domain::Reservation;

/// One page of confirmed records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmedPage {
    /// Where the next page begins; `None` after the last.
    pub next: Option<u64>,
    /// A record may be told on two pages.
    pub reservations: Vec<Reservation>,
}

impl Stock {
    /// Reads what is confirmed among about [`HOLDS_PAGE`] keys. It goes through all keys of Redis,
    /// for the rare day on which the ledger has lost orders. The first page begins at 0.
    pub async fn scan_confirmed(
        &self,
        bucket: &Bucket,
        cursor: u64,
    ) -> Result<ConfirmedPage, StockError> {
        let call = self
            .scripts
            .scan_confirmed
            .call()
            .key(self.keys.hold_prefix(bucket))
            .arg(cursor)
            .arg(HOLDS_PAGE);
        let replies: Vec<String> = self.connection.run(call).await?;
        let (head, replies) =
            replies.split_first().ok_or_else(|| StockError::malformed("scan_confirmed", ""))?;
        let mut head = Words::of("scan_confirmed", head);
        match head.word()? {
            "page" => {}
            _ => return Err(head.malformed()),
        }
        let reservations = replies.iter().map(|reply| read(bucket, reply));
        Ok(ConfirmedPage {
            next: Some(head.parse()?).filter(|cursor| *cursor != 0),
            reservations: reservations.collect::<Result<_, _>>()?,
        })
    }
}

fn read(bucket: &Bucket, reply: &str) -> Result<Reservation, StockError> {
    let mut words = Words::of("scan_confirmed", reply);
    match words.word()? {
        "confirmed" => {}
        _ => return Err(words.malformed()),
    }
    words.reservation(&bucket.item)
}
