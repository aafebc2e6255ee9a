//! Which bucket a buyer's purchases live in, and which partition an item's messages travel through.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use super::{BuyerId, InvalidText, ItemId};

/// Into how many buckets an item's stock is divided in Redis: 1–64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketCount(u16);

impl BucketCount {
    pub const ONE: Self = Self(1);
    pub const MOST: Self = Self(Self::MAX);

    /// The most buckets that an item may have. Each costs every look at the item a call.
    pub const MAX: u16 = 64;

    /// Checks the range.
    pub fn new(count: u16) -> Result<Self, InvalidText> {
        if (1..=Self::MAX).contains(&count) { Ok(Self(count)) } else { Err(INVALID) }
    }

    /// The number of buckets.
    pub fn get(self) -> u16 {
        self.0
    }
}

const INVALID: InvalidText =
    InvalidText { kind: "a number of buckets", rule: "a whole number from 1 to 64" };

impl FromStr for BucketCount {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        text.parse().map_err(|_| INVALID).and_then(Self::new)
    }
}

impl fmt::Display for BucketCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A buyer's home bucket: `xxh3_64(buyer) % buckets`. Limit, idempotency record and stock of one
/// purchase thereby live in one slot.
pub fn home_bucket(buyer: &BuyerId, buckets: BucketCount) -> u16 {
    place(buyer.as_str(), buckets.get())
}

/// An item's stock, bucket by bucket: as even as it gets, the rest in the first ones.
pub fn divide(units: u64, buckets: BucketCount) -> Vec<u64> {
    let count = u64::from(buckets.get());
    (0..count).map(|number| units / count + u64::from(number < units % count)).collect()
}

/// An item's partition of the order queue: `xxh3_64(item) % partitions`. `partitions` is at least 1.
pub fn partition(item: &ItemId, partitions: u16) -> u16 {
    place(item.as_str(), partitions)
}

fn place(name: &str, places: u16) -> u16 {
    let place = xxh3_64(name.as_bytes()) % u64::from(places.max(1));
    u16::try_from(place).expect("smaller than a u16 divisor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_divided_evenly_and_completely() {
        let of = |units, count| divide(units, BucketCount::new(count).expect("a count"));
        assert_eq!(of(500, 1), [500]);
        assert_eq!(of(5, 3), [2, 2, 1]);
        assert_eq!(of(1, 4), [1, 0, 0, 0]);
        assert_eq!(of(1_000_000_000, 64).iter().sum::<u64>(), 1_000_000_000);
    }

    #[test]
    fn an_item_has_from_1_to_64_buckets() {
        for (text, count) in [("1", 1), ("64", 64)] {
            assert_eq!(text.parse().map(BucketCount::get), Ok(count));
        }
        for text in ["0", "65", "-1", "1.5", "", "many", "65537"] {
            assert!(text.parse::<BucketCount>().is_err(), "{text}");
        }
    }

    /// Every process, of every release, must agree on these.
    #[test]
    fn places_never_change() {
        let buyer: BuyerId = "buyer-1".parse().expect("a buyer");
        let item: ItemId = "flash-tee".parse().expect("an item");
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2, "the published vector of XXH3");
        let home = |buckets| home_bucket(&buyer, BucketCount::new(buckets).expect("a count"));
        assert_eq!((home(1), home(64)), (0, 7));
        assert_eq!(partition(&item, 4), 2);
    }
}
