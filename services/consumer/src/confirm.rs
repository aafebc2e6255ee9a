//! Makes winners final in Redis, item by item.

use std::collections::HashMap;

use shared::domain::{ItemId, Reservation};
use shared::retry::until_done;
use shared::stock::{ConfirmReply, Stock};
use tokio_util::sync::CancellationToken;

/// Confirms the holds of committed reservations. `None`: given up half-way.
pub(crate) async fn confirm_all(
    stock: &Stock,
    winners: &[Reservation],
    give_up: &CancellationToken,
) -> Option<()> {
    let mut by_item: HashMap<&ItemId, Vec<Reservation>> = HashMap::new();
    for winner in winners {
        by_item.entry(&winner.item).or_default().push(winner.clone());
    }
    for (item, winners) in by_item {
        let replies = until_done(
            give_up,
            || stock.confirm(item, &winners),
            |error, pause| tracing::warn!(%error, ?pause, "keeping confirmed orders until Redis hears of them"),
        )
        .await?;
        winners.iter().zip(replies).for_each(|(winner, reply)| tell(winner, &reply));
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
