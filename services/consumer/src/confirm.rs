//! Makes winners final in Redis, bucket by bucket.

use std::collections::HashMap;

use shared::config::limits::{BUCKETS_PER_ITEM, SETTLE_BATCH};
use shared::domain::Reservation;
use shared::retry::until_done;
use shared::stock::{Bucket, ConfirmReply, Stock};
use tokio_util::sync::CancellationToken;

/// Confirms the holds of committed reservations. `None`: given up half-way.
pub(crate) async fn confirm_all(
    stock: &Stock,
    winners: &[Reservation],
    give_up: &CancellationToken,
) -> Option<()> {
    let mut by_bucket: HashMap<Bucket, Vec<Reservation>> = HashMap::new();
    for winner in winners {
        let bucket = Bucket::home(&winner.item, &winner.buyer, BUCKETS_PER_ITEM);
        by_bucket.entry(bucket).or_default().push(winner.clone());
    }
    for (bucket, winners) in by_bucket {
        for page in winners.chunks(SETTLE_BATCH) {
            let replies = until_done(
                give_up,
                || stock.confirm(&bucket, page),
                |error, pause| tracing::warn!(%error, ?pause, "keeping confirmed orders until Redis hears of them"),
            )
            .await?;
            page.iter().zip(replies).for_each(|(winner, reply)| tell(winner, &reply));
        }
    }
    Some(())
}

fn tell(winner: &Reservation, reply: &ConfirmReply) {
    let (request_id, item) = (winner.request_id, &winner.item);
    match reply {
        ConfirmReply::Done | ConfirmReply::Already => {}
        ConfirmReply::Unseen => {
            tracing::warn!(%request_id, %item, "confirmed an order whose hold Redis had lost");
        }
        ConfirmReply::Conflict { state, reservation_id }
            if *reservation_id != winner.reservation_id =>
        {
            tracing::warn!(%request_id, %item, %state, %reservation_id,
                "an order is confirmed; its request's record belongs to a surplus reservation");
        }
        ConfirmReply::Conflict { state, reservation_id } => {
            tracing::error!(%request_id, %item, %state, %reservation_id,
                "an order is confirmed, but its hold was restored");
        }
    }
}
