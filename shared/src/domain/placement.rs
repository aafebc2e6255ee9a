//! Which bucket a buyer's purchases live in, and which partition an item's messages travel through.

use xxhash_rust::xxh3::xxh3_64;

use super::{BuyerId, ItemId};

/// A buyer's home bucket: `xxh3_64(buyer) % buckets`. Limit, idempotency record and stock of one
/// purchase thereby live in one slot. `buckets` is at least 1.
pub fn home_bucket(buyer: &BuyerId, buckets: u16) -> u16 {
    place(buyer.as_str(), buckets)
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

    /// Every process, of every release, must agree on these.
    #[test]
    fn places_never_change() {
        let buyer: BuyerId = "buyer-1".parse().expect("a buyer");
        let item: ItemId = "flash-tee".parse().expect("an item");
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2, "the published vector of XXH3");
        assert_eq!(home_bucket(&buyer, 1), 0);
        assert_eq!(home_bucket(&buyer, 64), 7);
        assert_eq!(partition(&item, 4), 2);
    }
}
