//! The names of everything in Redis. Keys of one bucket share a hash tag, and so a cluster slot.

use uuid::Uuid;

use crate::domain::{BucketCount, BuyerId, ItemId, Namespace, RequestId, home_bucket};

/// One shard of an item's stock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    pub item: ItemId,
    pub number: u16,
}

impl Bucket {
    /// Every bucket of an item.
    pub fn all(item: &ItemId, buckets: BucketCount) -> impl Iterator<Item = Self> + Clone {
        (0..buckets.get()).map(move |number| Self { item: item.clone(), number })
    }

    /// The bucket in which everything of a buyer's purchases lives.
    pub fn home(item: &ItemId, buyer: &BuyerId, buckets: BucketCount) -> Self {
        Self { item: item.clone(), number: home_bucket(buyer, buckets) }
    }
}

/// Builds keys of the form `<ns>:{<item>#<bucket>}:<what>`.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    namespace: Namespace,
}

impl Keys {
    pub(super) fn new(namespace: &Namespace) -> Self {
        Self { namespace: namespace.clone() }
    }

    /// Hash: the sale, as this bucket sells it.
    pub(super) fn sale(&self, bucket: &Bucket) -> String {
        self.key(bucket, "sale")
    }

    /// Hash: buyer → units held or bought.
    pub(super) fn buyers(&self, bucket: &Bucket) -> String {
        self.key(bucket, "buyers")
    }

    /// Sorted set: request id → when the reconciler looks next, for holds not yet settled.
    pub(super) fn held(&self, bucket: &Bucket) -> String {
        self.key(bucket, "held")
    }

    /// Sorted set: request id → when its order was confirmed without a hold, since the last
    /// comparison with the ledger.
    pub(super) fn unseen(&self, bucket: &Bucket) -> String {
        self.key(bucket, "unseen")
    }

    /// Sorted set: units on their way to other buckets → when they left.
    pub(super) fn moving(&self, bucket: &Bucket) -> String {
        self.key(bucket, "moving")
    }

    /// String: whether the units of a transfer to this bucket have come.
    pub(super) fn transfer(&self, bucket: &Bucket, id: Uuid) -> String {
        format!("{}{id}", self.key(bucket, "transfer:"))
    }

    /// String: one hold.
    pub(super) fn hold(&self, bucket: &Bucket, request_id: RequestId) -> String {
        format!("{}{request_id}", self.hold_prefix(bucket))
    }

    /// What the keys of a bucket's holds begin with.
    pub(super) fn hold_prefix(&self, bucket: &Bucket) -> String {
        self.key(bucket, "hold:")
    }

    /// Hash: who has the item's lock.
    pub(super) fn lock(&self, item: &ItemId) -> String {
        self.item_key(item, "lock")
    }

    /// String: the last fence that was given out with the item's lock.
    pub(super) fn fence(&self, item: &ItemId) -> String {
        self.item_key(item, "fence")
    }

    /// Hash: token → place of those who wait for the item's lock.
    pub(super) fn waiting(&self, item: &ItemId) -> String {
        self.item_key(item, "waiting")
    }

    /// Of an item as a whole, whatever its buckets; these share a slot of their own.
    fn item_key(&self, item: &ItemId, what: &str) -> String {
        format!("{}:{{{item}}}:{what}", self.namespace)
    }

    /// String: which store this Redis is. Of the deployment, not of a bucket.
    pub(super) fn store(&self) -> String {
        format!("{}:store", self.namespace)
    }

    /// Nothing: a name in some slot, for a script that only shows that it runs there.
    pub(super) fn probe(&self, number: u32) -> String {
        format!("{}:{{probe-{number}}}:probe", self.namespace)
    }

    fn key(&self, Bucket { item, number }: &Bucket, what: &str) -> String {
        format!("{}:{{{item}#{number}}}:{what}", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_never_change() {
        let keys = Keys::new(&"shop-eu".parse().expect("a namespace"));
        let bucket = Bucket { item: "Flash_T.1".parse().expect("an item"), number: 0 };
        let request_id = "0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77".parse().expect("a request id");
        assert_eq!(keys.store(), "shop-eu:store");
        assert_eq!(keys.sale(&bucket), "shop-eu:{Flash_T.1#0}:sale");
        assert_eq!(keys.buyers(&bucket), "shop-eu:{Flash_T.1#0}:buyers");
        assert_eq!(keys.held(&bucket), "shop-eu:{Flash_T.1#0}:held");
        assert_eq!(keys.unseen(&bucket), "shop-eu:{Flash_T.1#0}:unseen");
        assert_eq!(keys.moving(&bucket), "shop-eu:{Flash_T.1#0}:moving");
        assert_eq!(
            keys.transfer(&bucket, Uuid::nil()),
            "shop-eu:{Flash_T.1#0}:transfer:00000000-0000-0000-0000-000000000000"
        );
        assert_eq!(
            keys.hold(&bucket, request_id),
            "shop-eu:{Flash_T.1#0}:hold:0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77"
        );
        assert_eq!(keys.lock(&bucket.item), "shop-eu:{Flash_T.1}:lock");
        assert_eq!(keys.fence(&bucket.item), "shop-eu:{Flash_T.1}:fence");
        assert_eq!(keys.waiting(&bucket.item), "shop-eu:{Flash_T.1}:waiting");
        assert_eq!(keys.probe(7), "shop-eu:{probe-7}:probe");
    }
}
