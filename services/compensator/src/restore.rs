//! Gives stock back in Redis, item by item.

use std::collections::HashMap;

use shared::domain::ItemId;
use shared::retry::until_done;
use shared::stock::{RestoreReply, RestoreRequest, Stock};
use tokio_util::sync::CancellationToken;

/// Restores holds. `None`: given up half-way.
pub(crate) async fn restore_all(
    stock: &Stock,
    restores: Vec<(ItemId, RestoreRequest)>,
    give_up: &CancellationToken,
) -> Option<()> {
    let mut by_item: HashMap<ItemId, Vec<RestoreRequest>> = HashMap::new();
    for (item, request) in restores {
        by_item.entry(item).or_default().push(request);
    }
    for (item, requests) in by_item {
        let replies = until_done(
            give_up,
            || stock.restore(&item, &requests),
            |error, pause| tracing::warn!(%error, ?pause, "keeping restores until Redis takes them"),
        )
        .await?;
        for (request, reply) in requests.iter().zip(replies) {
            tell(&item, request, &reply);
        }
    }
    Some(())
}

fn tell(item: &ItemId, request: &RestoreRequest, reply: &RestoreReply) {
    let (request_id, verdict) = (request.request_id, &request.verdict);
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
