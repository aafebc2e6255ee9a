//! Gives stock back in Redis, bucket by bucket.

use std::collections::HashMap;

use shared::config::limits::BUCKETS_PER_ITEM;
use shared::domain::ItemId;
use shared::retry::until_done;
use shared::stock::{Bucket, RestoreReply, RestoreRequest, Stock};
use tokio_util::sync::CancellationToken;

/// Restores holds. `None`: given up half-way.
pub(crate) async fn restore_all(
    stock: &Stock,
    restores: Vec<(ItemId, RestoreRequest)>,
    give_up: &CancellationToken,
) -> Option<()> {
    let mut by_bucket: HashMap<Bucket, Vec<RestoreRequest>> = HashMap::new();
    for (item, request) in restores {
        let bucket = Bucket::home(&item, &request.buyer, BUCKETS_PER_ITEM);
        by_bucket.entry(bucket).or_default().push(request);
    }
    for (bucket, requests) in by_bucket {
        let replies = until_done(
            give_up,
            || stock.restore(&bucket, &requests),
            |error, pause| tracing::warn!(%error, ?pause, "keeping restores until Redis takes them"),
        )
        .await?;
        for (request, reply) in requests.iter().zip(replies) {
            tell(&bucket, request, &reply);
        }
    }
    Some(())
}

fn tell(bucket: &Bucket, request: &RestoreRequest, reply: &RestoreReply) {
    let (request_id, item, verdict) = (request.request_id, &bucket.item, &request.verdict);
    match reply {
        RestoreReply::Done => tracing::debug!(%request_id, %item, %verdict, "restored"),
        RestoreReply::Already => {}
        RestoreReply::Unseen => {
            tracing::warn!(%request_id, %item, %verdict, "no hold to restore; its verdict is written down");
        }
        RestoreReply::Conflict { state, reservation_id } => {
            tracing::warn!(%request_id, %item, %verdict, %state, %reservation_id,
                "nothing to restore: the record belongs to another reservation, or is confirmed");
        }
    }
}
