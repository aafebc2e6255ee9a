//! Compares a frozen item with the ledger and adds the difference. Under the item lock.

use std::collections::HashMap;
use std::time::Duration;

use shared::config::limits::TOTALS_PAGE;
use shared::crash;
use shared::domain::{BucketCount, BuyerId, home_bucket, spread};
use shared::ledger::Ledger;
use shared::stock::{
    Bucket, CorrectReply, Correction, Freeze, ItemLock, LockLost, Stock, StockError,
};

use crate::compare::{CompareError, Compared, compare};
use crate::standstill::{Standstill, StandstillError};
use crate::transfers::finish_transfers;

/// What is done about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Plan,
    /// It is corrected; but when the ledger has gone back in time, nothing is raised.
    Apply,
    /// It is corrected even so: an operator vouches for the ledger.
    ApplyRestoredLedger,
}

/// What was found, and what was done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corrected {
    /// Units that Redis had too few (positive) or too many (negative).
    pub units: i64,
    /// Units that were added to what is available.
    pub added: i64,
    /// What the totals of buyers differed by.
    pub buyers: Vec<(BuyerId, i64)>,
    /// True when those were corrected.
    pub buyers_corrected: bool,
    /// Confirmed units that Redis has counted and the ledger does not have.
    pub ledger_behind: u64,
    /// True when Redis has stopped counting them, because an operator vouches for the ledger.
    pub ledger_trusted: bool,
}

/// Why nothing more was corrected. Doing it again is always safe.
#[derive(Debug, thiserror::Error)]
pub enum CorrectError {
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Lost(#[from] LockLost),
    #[error(transparent)]
    Standstill(#[from] StandstillError),
    #[error(
        "the freeze of {0} was over before the correction: nothing was corrected, and it is compared again later"
    )]
    Lapsed(shared::domain::ItemId),
    #[error("{0} was built anew while it was compared")]
    Moved(shared::domain::ItemId),
    #[error(transparent)]
    Stock(#[from] StockError),
}

/// Everything that correcting one item needs.
pub(crate) struct Corrector<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) stock: &'a Stock,
    pub(crate) lock: &'a ItemLock,
    pub(crate) mode: Mode,
    /// More holds than this are not compared.
    pub(crate) most_holds: usize,
}

impl Corrector<'_> {
    /// Compares the stock and the totals of these buyers, and corrects both. A few buyers at a time:
    /// each time buyers wait for some milliseconds only.
    pub(crate) async fn correct(&self, suspects: &[BuyerId]) -> Result<Corrected, CorrectError> {
        let mut all = Corrected::default();
        let mut pages = suspects.chunks(TOTALS_PAGE);
        let mut page = pages.next().unwrap_or_default();
        loop {
            let found = self.one_freeze(page).await?;
            // What an earlier freeze has left uncorrected is found again.
            all.units = all.added + found.units;
            all.added += found.added;
            all.buyers.extend(found.buyers);
            all.buyers_corrected |= found.buyers_corrected;
            all.ledger_behind = all.ledger_behind.max(found.ledger_behind);
            all.ledger_trusted |= found.ledger_trusted;
            match pages.next() {
                Some(next) => page = next,
                None => return Ok(all),
            }
        }
    }

    async fn one_freeze(&self, buyers: &[BuyerId]) -> Result<Corrected, CorrectError> {
        let item = self.lock.item();
        let count = self.stock.bucket_count(item).await?;
        let count = count.ok_or_else(|| CompareError::NotLive(item.clone()))?;
        let buckets = Bucket::all(item, count).collect();
        let standstill = Standstill::begin(self.stock, self.lock, buckets).await?;
        crash::point("reconciler.frozen");
        let corrected = self.compare_and_correct(&standstill, buyers).await;
        crash::point("reconciler.corrected");
        standstill.end().await;
        corrected
    }

    async fn compare_and_correct(
        &self,
        standstill: &Standstill<'_>,
        buyers: &[BuyerId],
    ) -> Result<Corrected, CorrectError> {
        // None begins or comes while the item stands still: what is found unfinished is all there is.
        for bucket in standstill.buckets() {
            finish_transfers(self.stock, bucket, Duration::ZERO).await?;
        }
        let compared = self.compare(buyers).await?;
        crash::point("reconciler.compared");
        let difference = &compared.difference;
        let mut corrected = Corrected {
            units: difference.units,
            added: 0,
            buyers: difference.buyers.clone(),
            buyers_corrected: false,
            ledger_behind: difference.ledger_behind,
            ledger_trusted: false,
        };
        let distrusts = difference.ledger_behind > 0 && self.mode != Mode::ApplyRestoredLedger;
        let units = if distrusts { difference.units.min(0) } else { difference.units };
        let totals = if distrusts { &[][..] } else { &difference.buyers[..] };
        let miscounted = if distrusts { 0 } else { difference.ledger_behind };
        let is_needed = units != 0 || !totals.is_empty() || miscounted > 0 || compared.unseen() > 0;
        if self.mode != Mode::Plan && is_needed {
            self.lock.check()?;
            crash::point("reconciler.correcting");
            corrected.added = self.add(standstill, &compared, units, miscounted, totals).await?;
            corrected.buyers_corrected = !totals.is_empty();
            corrected.ledger_trusted = miscounted > 0;
        }
        Ok(corrected)
    }

    async fn compare(&self, buyers: &[BuyerId]) -> Result<Compared, CompareError> {
        compare(self.ledger, self.stock, self.lock.item(), buyers, self.most_holds).await
    }

    async fn add(
        &self,
        standstill: &Standstill<'_>,
        compared: &Compared,
        units: i64,
        miscounted: u64,
        totals: &[(BuyerId, i64)],
    ) -> Result<i64, CorrectError> {
        let count = compared.buckets.first().map_or(BucketCount::ONE, |bucket| bucket.buckets);
        let mut by_home: HashMap<u16, Vec<(BuyerId, i64)>> = HashMap::new();
        for (buyer, units) in totals {
            let home = home_bucket(buyer, count);
            by_home.entry(home).or_default().push((buyer.clone(), *units));
        }
        let available: Vec<_> = compared.buckets.iter().map(|bucket| bucket.available).collect();
        let shares = spread(units, &available);
        let counted: Vec<_> =
            compared.buckets.iter().map(|bucket| bucket.confirmed_units).collect();
        let miscounted = i64::try_from(miscounted).unwrap_or(i64::MAX);
        let shares = shares.into_iter().zip(spread(-miscounted, &counted));
        let mut added = 0;
        let buckets = standstill.buckets().iter().zip(&compared.buckets).zip(shares);
        for ((bucket, seen), (units, confirmed_units)) in buckets {
            let correction = Correction {
                epoch: seen.epoch,
                units,
                compared_until: compared.at(),
                confirmed_units,
                buyers: by_home.remove(&bucket.number).unwrap_or_default(),
            };
            added += self.ask_again_once(bucket, standstill.freeze(), &correction).await?;
        }
        Ok(added)
    }

    /// A reply that was lost is asked for once more, under the same freeze, which corrects once.
    async fn ask_again_once(
        &self,
        bucket: &Bucket,
        freeze: Freeze,
        correction: &Correction,
    ) -> Result<i64, CorrectError> {
        let reply = match self.stock.correct(bucket, freeze, correction).await {
            Err(error) if error.is_unknown() => {
                tracing::warn!(item = %bucket.item, %error, "asking Redis again");
                self.stock.correct(bucket, freeze, correction).await?
            }
            reply => reply?,
        };
        let item = bucket.item.clone();
        match reply {
            CorrectReply::Corrected { added } | CorrectReply::Already { added } => Ok(added),
            CorrectReply::Lapsed => Err(CorrectError::Lapsed(item)),
            CorrectReply::Stale { .. } => Err(CorrectError::Lost(self.lock.lost_to_another())),
            CorrectReply::Moved { .. } => Err(CorrectError::Moved(item)),
            CorrectReply::Absent => Err(CompareError::NotLive(item).into()),
        }
    }
}
