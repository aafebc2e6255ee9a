//! Compares a frozen item with the ledger and adds the difference. Under the item lock.

use std::collections::HashMap;

use shared::config::limits::{BUCKETS_PER_ITEM, TOTALS_PAGE};
use shared::crash;
use shared::domain::{BuyerId, spread};
use shared::ledger::Ledger;
use shared::stock::{
    Bucket, CorrectReply, Correction, Freeze, FreezeReply, ItemLock, LockLost, Stock, StockError,
};
use uuid::Uuid;

use crate::compare::{CompareError, Compared, compare};

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
        let freeze = Freeze { fence: self.lock.fence(), token: Uuid::new_v4() };
        for bucket in Bucket::all(item, BUCKETS_PER_ITEM) {
            self.lock.check()?;
            let reply = self.stock.freeze(&bucket, freeze, self.lock.lease()).await?;
            self.still_frozen(reply)?;
        }
        crash::point("reconciler.frozen");
        let corrected = self.compare_and_correct(freeze, buyers).await;
        crash::point("reconciler.corrected");
        for bucket in Bucket::all(item, BUCKETS_PER_ITEM) {
            if let Err(error) = self.stock.thaw(&bucket, freeze).await {
                tracing::warn!(%item, %error, "the freeze ends with its lease");
            }
        }
        corrected
    }

    async fn compare_and_correct(
        &self,
        freeze: Freeze,
        buyers: &[BuyerId],
    ) -> Result<Corrected, CorrectError> {
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
            corrected.added = self.add(freeze, &compared, units, miscounted, totals).await?;
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
        freeze: Freeze,
        compared: &Compared,
        units: i64,
        miscounted: u64,
        totals: &[(BuyerId, i64)],
    ) -> Result<i64, CorrectError> {
        let item = self.lock.item();
        let mut by_bucket: HashMap<Bucket, Vec<(BuyerId, i64)>> = HashMap::new();
        for (buyer, units) in totals {
            let bucket = Bucket::home(item, buyer, BUCKETS_PER_ITEM);
            by_bucket.entry(bucket).or_default().push((buyer.clone(), *units));
        }
        let available: Vec<_> = compared.buckets.iter().map(|bucket| bucket.available).collect();
        let shares = spread(units, &available);
        let counted: Vec<_> =
            compared.buckets.iter().map(|bucket| bucket.confirmed_units).collect();
        let miscounted = i64::try_from(miscounted).unwrap_or(i64::MAX);
        let shares = shares.into_iter().zip(spread(-miscounted, &counted));
        let mut added = 0;
        let buckets = Bucket::all(item, BUCKETS_PER_ITEM).zip(&compared.buckets).zip(shares);
        for ((bucket, seen), (units, confirmed_units)) in buckets {
            let correction = Correction {
                epoch: seen.epoch,
                units,
                compared_until: compared.at(),
                confirmed_units,
                buyers: by_bucket.remove(&bucket).unwrap_or_default(),
            };
            added += self.ask_again_once(&bucket, freeze, &correction).await?;
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

    fn still_frozen(&self, reply: FreezeReply) -> Result<(), CorrectError> {
        let item = self.lock.item().clone();
        match reply {
            FreezeReply::Frozen | FreezeReply::Thawed => Ok(()),
            FreezeReply::Absent => Err(CompareError::NotLive(item).into()),
            FreezeReply::Stale { .. } => Err(CorrectError::Lost(self.lock.lost_to_another())),
            FreezeReply::Lapsed => Err(CorrectError::Lapsed(item)),
        }
    }
}
