//! `forget_holds.lua`, `warm.lua`, `warm_page.lua`, `open.lua`: builds a bucket from the ledger, then puts it on sale.

use super::keys::Bucket;
use super::reply::Words;
use super::short_id::ShortId;
use super::terms::Terms;
use super::{Stock, StockError};
use crate::config::limits::{RECORD_RETENTION, SETTLE_BATCH};
use crate::domain::{
    BucketCount, BucketState, BuyerId, HoldState, Quantity, RequestId, ReservationId, Verdict,
};

/// What a bucket is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketPlan {
    pub epoch: u64,
    pub buckets: BucketCount,
    pub available: u64,
    pub confirmed_units: u64,
    pub terms: Terms,
}

/// One decided order, as the record that a repeat of its key finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRecord {
    pub request_id: RequestId,
    pub reservation_id: ReservationId,
    pub buyer: BuyerId,
    pub quantity: Quantity,
    pub verdict: Verdict,
    /// All units that this buyer has confirmed of the item.
    pub buyer_total: u64,
}

/// How a step of a warm-up went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmReply {
    /// The step is done.
    Done,
    /// The bucket is open under this epoch and stays as it is.
    Live { epoch: u64 },
    /// Another warm-up is at work under this epoch.
    Moved { epoch: u64 },
    /// A later holder of the lock was here.
    Stale { fence: u64 },
    /// It cannot be opened: pages are missing, or the server has restarted since it was built.
    Incomplete,
}

/// How forgetting went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgetReply {
    /// So many are left.
    Forgotten { left: u64 },
    /// The bucket sells under this epoch and keeps its holds.
    Live { epoch: u64 },
}

impl Stock {
    /// Lets up to [`SETTLE_BATCH`] holds expire of a bucket that is not live and about to be built
    /// under this epoch. A settled record stays settled.
    pub async fn forget_holds(
        &self,
        bucket: &Bucket,
        epoch: u64,
        fence: u64,
    ) -> Result<ForgetReply, StockError> {
        let call = self
            .scripts
            .forget_holds
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.held(bucket))
            .key(self.keys.hold_prefix(bucket))
            .arg(epoch)
            .arg(SETTLE_BATCH)
            .arg(RECORD_RETENTION.as_millis())
            .arg(fence);
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("forget_holds", &reply);
        Ok(match words.word()? {
            "forgotten" => ForgetReply::Forgotten { left: words.parse()? },
            "live" => ForgetReply::Live { epoch: words.parse()? },
            _ => return Err(words.malformed()),
        })
    }

    /// Begins to build a bucket: its stock is there, nothing can be bought. One that has no place in
    /// the layout of the plan only tells whoever asks for it.
    pub async fn warm(
        &self,
        bucket: &Bucket,
        plan: &BucketPlan,
        fence: u64,
    ) -> Result<WarmReply, StockError> {
        let has_place = bucket.number < plan.buckets.get();
        let state = if has_place { BucketState::Building } else { BucketState::Moved };
        let call = self
            .scripts
            .warm
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.buyers(bucket))
            .key(self.keys.held(bucket))
            .key(self.keys.unseen(bucket))
            .key(self.keys.moving(bucket))
            .arg(plan.epoch)
            .arg(plan.buckets)
            .arg(plan.available)
            .arg(plan.confirmed_units)
            .arg(plan.terms.window.opens_at().0)
            .arg(plan.terms.window.closes_at().0)
            .arg(super::or_empty(plan.terms.limit_per_buyer))
            .arg(plan.terms.version)
            .arg(super::or_empty(plan.terms.pause))
            .arg(fence)
            .arg(state);
        read("warm", &self.connection.run::<String>(call).await?)
    }

    /// Adds up to [`SETTLE_BATCH`] decided orders. The last page, which may be empty, completes the
    /// bucket.
    pub async fn warm_page(
        &self,
        bucket: &Bucket,
        epoch: u64,
        orders: &[OrderRecord],
        is_last: bool,
    ) -> Result<WarmReply, StockError> {
        let mut call = self
            .scripts
            .warm_page
            .call()
            .key(self.keys.sale(bucket))
            .key(self.keys.buyers(bucket))
            .arg(epoch)
            .arg(RECORD_RETENTION.as_millis())
            .arg(u8::from(is_last));
        for order in orders {
            let (state, verdict) = match &order.verdict {
                Verdict::Confirmed(_) => (HoldState::Confirmed, String::new()),
                verdict => (HoldState::Restored, verdict.to_string()),
            };
            call = call
                .key(self.keys.hold(bucket, order.request_id))
                .arg(state)
                .arg(verdict)
                .arg(ShortId(order.reservation_id))
                .arg(&order.buyer)
                .arg(order.quantity)
                .arg(order.buyer_total);
        }
        read("warm_page", &self.connection.run::<String>(call).await?)
    }

    /// Puts a completely built bucket on sale.
    pub async fn open(&self, bucket: &Bucket, epoch: u64) -> Result<WarmReply, StockError> {
        let call = self.scripts.open.call().key(self.keys.sale(bucket)).arg(epoch);
        read("open", &self.connection.run::<String>(call).await?)
    }
}

fn read(script: &'static str, reply: &str) -> Result<WarmReply, StockError> {
    let mut words = Words::of(script, reply);
    Ok(match words.word()? {
        "building" | "left" | "built" | "open" => WarmReply::Done,
        "live" => WarmReply::Live { epoch: words.parse()? },
        "moved" => WarmReply::Moved { epoch: words.parse()? },
        "stale" => WarmReply::Stale { fence: words.parse()? },
        "unfinished" | "other" => WarmReply::Incomplete,
        _ => return Err(words.malformed()),
    })
}
