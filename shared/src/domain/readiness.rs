//! Whether an item can be sold from Redis as it stands there, and if not, what it takes.

use std::fmt;
use std::str::FromStr;

use super::{BucketCount, InvalidText};

/// How far the warm-up of a bucket has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketState {
    /// Pages are missing.
    Building,
    /// Complete; the item's other buckets may not be.
    Built,
    Open,
    /// Of an earlier layout, which had more buckets: whoever asks is told the new one.
    Moved,
}

/// A bucket that is in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketStanding {
    pub epoch: u64,
    /// How many the item has under this epoch.
    pub buckets: BucketCount,
    pub state: BucketState,
    /// True when this server is the one on which the bucket was last made to agree with the ledger.
    pub is_stamped: bool,
    /// Holds that are not settled.
    pub held: u64,
    /// Orders that were confirmed without a hold since the last comparison.
    pub unseen: u64,
    /// True when units are on their way to other buckets.
    pub is_moving: bool,
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
    /// Its buckets sell under an earlier epoch: a warm-up, or a change of the layout, was begun and
    /// not finished. It has to be built anew; nothing is lost.
    Outdated,
    /// It has to be built from the ledger. `in_flight`: something that was reserved earlier may
    /// still be on its way to the ledger.
    Cold { in_flight: bool },
    /// Redis knows a later epoch than the ledger: not Redis, but the ledger has gone back in time.
    LedgerBehind { epoch: u64, buckets: BucketCount },
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

/// Judges an item by the ledger's epoch, which is 0 before the first warm-up, by the number of buckets
/// that the ledger says it has, and by these buckets, in their order and perhaps with further ones of
/// an earlier layout; one that is not in Redis is `None`.
pub fn readiness(
    ledger_epoch: u64,
    ledger_buckets: BucketCount,
    buckets: &[Option<BucketStanding>],
) -> Readiness {
    let latest = buckets.iter().flatten().max_by_key(|bucket| bucket.epoch);
    if let Some(BucketStanding { epoch, buckets, .. }) = latest.filter(|b| b.epoch > ledger_epoch) {
        return Readiness::LedgerBehind { epoch: *epoch, buckets: *buckets };
    }
    if let Some(layout) = whole(buckets, ledger_epoch, ledger_buckets) {
        let all_stamped = layout.iter().all(|bucket| bucket.is_stamped);
        if layout.iter().all(|bucket| bucket.state == BucketState::Open) {
            return if all_stamped { Readiness::Live } else { Readiness::Uncompared };
        }
        if all_stamped {
            // Nothing was sold under this epoch yet; whoever began it waited for what was on its way.
            let is_built = layout.iter().all(|bucket| bucket.state != BucketState::Building);
            return if is_built { Readiness::Built } else { Readiness::Cold { in_flight: false } };
        }
    }
    let earlier = buckets.first().copied().flatten();
    let earlier = earlier.and_then(|first| whole(buckets, first.epoch, first.buckets));
    match earlier {
        Some(layout) if layout.iter().all(BucketStanding::is_live) => Readiness::Outdated,
        _ => Readiness::Cold { in_flight: ledger_epoch > 0 },
    }
}

/// The buckets of a layout, if all of them are there.
fn whole(
    buckets: &[Option<BucketStanding>],
    epoch: u64,
    count: BucketCount,
) -> Option<Vec<BucketStanding>> {
    let of_layout = |bucket: &Option<BucketStanding>| {
        bucket.filter(|bucket| (bucket.epoch, bucket.buckets) == (epoch, count))
    };
    buckets.get(..usize::from(count.get()))?.iter().map(of_layout).collect()
}

impl fmt::Display for BucketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Building => "building",
            Self::Built => "built",
            Self::Open => "open",
            Self::Moved => "moved",
        })
    }
}

impl FromStr for BucketState {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        match text {
            "building" => Ok(Self::Building),
            "built" => Ok(Self::Built),
            "open" => Ok(Self::Open),
            "moved" => Ok(Self::Moved),
            _ => Err(InvalidText {
                kind: "a bucket's state",
                rule: "building, built, open or moved",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BucketState::{Building, Built, Moved, Open};
    use super::*;

    fn bucket(epoch: u64, state: BucketState, is_stamped: bool) -> Option<BucketStanding> {
        of(1, epoch, state, is_stamped)
    }

    fn of(count: u16, epoch: u64, state: BucketState, is_stamped: bool) -> Option<BucketStanding> {
        let buckets = BucketCount::new(count).expect("a count");
        let (held, unseen, is_moving) = (0, 0, false);
        Some(BucketStanding { epoch, buckets, state, is_stamped, held, unseen, is_moving })
    }

    fn readiness(epoch: u64, count: u16, buckets: &[Option<BucketStanding>]) -> Readiness {
        super::readiness(epoch, BucketCount::new(count).expect("a count"), buckets)
    }

    #[test]
    fn an_item_is_live_when_every_bucket_is() {
        let live = of(2, 3, Open, true);
        assert_eq!(readiness(3, 2, &[live, live]), Readiness::Live);
        assert_eq!(readiness(3, 2, &[live, of(2, 3, Open, false)]), Readiness::Uncompared);
        assert_eq!(readiness(3, 2, &[live, of(2, 3, Built, true)]), Readiness::Built);
        assert_eq!(readiness(3, 2, &[live, None]), Readiness::Cold { in_flight: true });
        let older = of(2, 2, Open, true);
        assert_eq!(readiness(3, 2, &[live, older]), Readiness::Cold { in_flight: true });
    }

    #[test]
    fn what_an_earlier_layout_has_left_behind_is_no_matter() {
        let (live, left) = (of(1, 4, Open, true), of(1, 4, Moved, true));
        assert_eq!(readiness(4, 1, &[live, left, left]), Readiness::Live);
    }

    #[test]
    fn a_layout_that_the_ledger_has_left_behind_still_sells() {
        let old = of(2, 3, Open, true);
        assert_eq!(readiness(4, 1, &[old, old]), Readiness::Outdated);
        assert_eq!(readiness(4, 4, &[old, old, None, None]), Readiness::Outdated);
        let half = [old, of(1, 4, Moved, true)];
        assert_eq!(readiness(4, 1, &half), Readiness::Cold { in_flight: true });
        assert_eq!(
            readiness(4, 2, &[of(2, 3, Open, false), old]),
            Readiness::Cold { in_flight: true }
        );
    }

    #[test]
    fn only_what_was_never_sold_has_nothing_on_its_way() {
        assert_eq!(readiness(0, 1, &[None]), Readiness::Cold { in_flight: false });
        assert_eq!(readiness(1, 1, &[None]), Readiness::Cold { in_flight: true });
        let half = bucket(1, Building, true);
        assert_eq!(readiness(1, 1, &[half]), Readiness::Cold { in_flight: false });
        let half_on_another = bucket(1, Building, false);
        assert_eq!(readiness(1, 1, &[half_on_another]), Readiness::Cold { in_flight: true });
    }

    #[test]
    fn a_later_epoch_in_redis_means_that_the_ledger_went_back() {
        let two = BucketCount::new(2).expect("a count");
        let behind = Readiness::LedgerBehind { epoch: 3, buckets: two };
        assert_eq!(readiness(2, 1, &[of(2, 3, Open, true), of(2, 3, Open, true)]), behind);
    }
}
