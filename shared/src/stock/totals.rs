//! `scan_totals.lua`, `read_totals.lua`: what buyers hold or have bought, as Redis counts it.

use super::keys::Bucket;
use super::reply::{Words, one_each};
use super::{Stock, StockError};
use crate::config::limits::TOTALS_PAGE;
use crate::domain::BuyerId;

/// One page of totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TotalsPage {
    /// Where the next page begins; `None` after the last.
    pub next: Option<u64>,
    /// A buyer may be told on two pages.
    pub totals: Vec<(BuyerId, u64)>,
}

impl Stock {
    /// Reads about [`TOTALS_PAGE`] totals. The first page begins at 0.
    pub async fn scan_totals(
        &self,
        bucket: &Bucket,
        cursor: u64,
    ) -> Result<TotalsPage, StockError> {
        let call = self
            .scripts
            .scan_totals
            .call()
            .key(self.keys.buyers(bucket))
            .arg(cursor)
            .arg(TOTALS_PAGE);
        let replies: Vec<String> = self.connection.run(call).await?;
        let (head, replies) =
            replies.split_first().ok_or_else(|| StockError::malformed("scan_totals", ""))?;
        let mut head = Words::of("scan_totals", head);
        match head.word()? {
            "page" => {}
            _ => return Err(head.malformed()),
        }
        let totals = replies.iter().map(|reply| read_buyer(reply)).collect::<Result<_, _>>()?;
        Ok(TotalsPage { next: Some(head.parse()?).filter(|cursor| *cursor != 0), totals })
    }

    /// The totals of up to [`TOTALS_PAGE`] buyers, in their order; who is not there has 0.
    pub async fn read_totals(
        &self,
        bucket: &Bucket,
        buyers: &[BuyerId],
    ) -> Result<Vec<u64>, StockError> {
        if buyers.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self.scripts.read_totals.call().key(self.keys.buyers(bucket));
        for buyer in buyers {
            call = call.arg(buyer);
        }
        let replies: Vec<String> = self.connection.run(call).await?;
        one_each("read_totals", &replies, buyers.len())?;
        replies.iter().map(|reply| read_total(reply)).collect()
    }
}

fn read_buyer(reply: &str) -> Result<(BuyerId, u64), StockError> {
    let mut words = Words::of("scan_totals", reply);
    match words.word()? {
        "buyer" => Ok((words.parse()?, words.parse()?)),
        _ => Err(words.malformed()),
    }
}

fn read_total(reply: &str) -> Result<u64, StockError> {
    let mut words = Words::of("read_totals", reply);
    match words.word()? {
        "total" => words.parse(),
        _ => Err(words.malformed()),
    }
}
