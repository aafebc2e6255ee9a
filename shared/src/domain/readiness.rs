//! Whether an item can be sold from Redis as it stands there, and if not, what it takes.

use std::str::FromStr;

use super::InvalidText;

/// How far the warm-up of a bucket has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketState {
    /// Pages are missing.
    Building,
    /// Complete; the item's other buckets may not be.
    Built,
    Open,
}

/// A bucket that is in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketStanding {
    pub epoch: u64,
    pub state: BucketState,
    /// True when this server is the one on which the bucket was last made to agree with the ledger.
    pub is_stamped: bool,
    /// Holds that are not settled.
    pub held: u64,
    /// Orders that were confirmed without a hold since the last comparison.
    pub unseen: u64,
}

/// What has to be done before an item sells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing: all buckets are open under the ledger's epoch, on the server that was last compared.
    Live,
    /// Its buckets are complete and only have to be opened.
    Built,
    /// Redis restarted or failed over: what is there has to be compared before it sells again.
    Uncompared,
    /// It has to be built from the ledger. `in_flight`: something that was reserved earlier may
    /// still be on its way to the ledger.
    Cold { in_flight: bool },
    /// Redis knows a later epoch than the ledger: not Redis, but the ledger has gone back in time.
    LedgerBehind { epoch: u64 },
}

impl Readiness {
    /// True when Redis has lost the item, or may have: nothing is sold before what was reserved
    /// earlier has been decided.
    pub fn has_lost_sales(self) -> bool {
        matches!(self, Self::Uncompared | Self::Cold { in_flight: true })
    }
}

impl BucketStanding {
    /// True when the bucket sells within its window.
    pub fn is_live(&self) -> bool {
        self.state == BucketState::Open && self.is_stamped
    }
}

/// Judges an item by the ledger's epoch, which is 0 before the first warm-up, and by each of its
/// buckets; one that is not in Redis is `None`.
pub fn readiness(ledger_epoch: u64, buckets: &[Option<BucketStanding>]) -> Readiness {
    let seen = || buckets.iter().flatten();
    if let Some(epoch) = seen().map(|bucket| bucket.epoch).max().filter(|e| *e > ledger_epoch) {
        return Readiness::LedgerBehind { epoch };
    }
    let is_whole = seen().count() == buckets.len() && seen().all(|b| b.epoch == ledger_epoch);
    let all_stamped = seen().all(|bucket| bucket.is_stamped);
    if is_whole && seen().all(|bucket| bucket.state == BucketState::Open) {
        return if all_stamped { Readiness::Live } else { Readiness::Uncompared };
    }
    if is_whole && all_stamped {
        // Nothing was sold under this epoch yet; whoever began it waited for what was on its way.
        let is_built = seen().all(|bucket| bucket.state != BucketState::Building);
        return if is_built { Readiness::Built } else { Readiness::Cold { in_flight: false } };
    }
    Readiness::Cold { in_flight: ledger_epoch > 0 }
}

impl FromStr for BucketState {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        match text {
            "building" => Ok(Self::Building),
            "built" => Ok(Self::Built),
            "open" => Ok(Self::Open),
            _ => Err(InvalidText { kind: "a bucket's state", rule: "building, built or open" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BucketState::{Building, Built, Open};
    use super::*;

    fn bucket(epoch: u64, state: BucketState, is_stamped: bool) -> Option<BucketStanding> {
        Some(BucketStanding { epoch, state, is_stamped, held: 0, unseen: 0 })
    }

    #[test]
    fn an_item_is_live_when_every_bucket_is() {
        let live = bucket(3, Open, true);
        assert_eq!(readiness(3, &[live, live]), Readiness::Live);
        assert_eq!(readiness(3, &[live, bucket(3, Open, false)]), Readiness::Uncompared);
        assert_eq!(readiness(3, &[live, bucket(3, Built, true)]), Readiness::Built);
        assert_eq!(readiness(3, &[live, None]), Readiness::Cold { in_flight: true });
        assert_eq!(
            readiness(3, &[live, bucket(2, Open, true)]),
            Readiness::Cold { in_flight: true }
        );
    }

    #[test]
    fn only_what_was_never_sold_has_nothing_on_its_way() {
        assert_eq!(readiness(0, &[None]), Readiness::Cold { in_flight: false });
        assert_eq!(readiness(1, &[None]), Readiness::Cold { in_flight: true });
        let half = bucket(1, Building, true);
        assert_eq!(readiness(1, &[half]), Readiness::Cold { in_flight: false });
        let half_on_another = bucket(1, Building, false);
        assert_eq!(readiness(1, &[half_on_another]), Readiness::Cold { in_flight: true });
    }

    #[test]
    fn a_later_epoch_in_redis_means_that_the_ledger_went_back() {
        assert_eq!(readiness(2, &[bucket(3, Open, true)]), Readiness::LedgerBehind { epoch: 3 });
    }
}
