//! More buyers than are corrected under one freeze.

use reconciler::Mode;
use shared::config::limits::TOTALS_PAGE;
use trials::line::{Line, limited};
use trials::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_several_freezes_is_found_and_corrected_once() {
    let shoes = limited("shoe", 100, 2);
    let line = Line::new().await;
    line.sell(&shoes).await;
    let buyers = 2 * TOTALS_PAGE + 1;
    for number in 0..buyers {
        line.drift_total(&shoes.item, &format!("buyer-{number}"), 1);
    }
    line.drift(&shoes.item, 3);
    let clerk = line.clerk().await;
    let planned = until("Redis and the ledger answer", async || {
        clerk.reconcile(&shoes.item, Mode::Plan).await.ok()
    })
    .await
    .found;
    assert_eq!((planned.units, planned.added, planned.buyers.len()), (-3, 0, buyers));
    let corrected = clerk.reconcile(&shoes.item, Mode::Apply).await.expect("corrected").found;
    assert_eq!((corrected.units, corrected.added), (-3, -3));
    assert_eq!((corrected.buyers.len(), corrected.buyers_corrected), (buyers, true));
    assert_eq!(line.available(&shoes.item).await, 100);
    assert_eq!(line.total_in_redis(&shoes.item, "buyer-0"), 0);
}
