//! The reconciler warms items up before they open.

use std::time::Duration;

use shared::domain::{ItemId, Sale};
use shared::stock::Snapshot;
use trials::buyer::Buyer;
use trials::line::{Line, Service, now, sale, window};
use trials::until::until;

const LEAD: Duration = Duration::from_secs(600);
const MINUTE: Duration = Duration::from_secs(60);

fn opening(item: &str, from_now: Duration) -> Sale {
    Sale { window: window(now() + from_now, now() + from_now + LEAD), ..sale(item, 5) }
}

async fn in_redis(line: &Line, item: &ItemId) -> Option<Snapshot> {
    line.stock.snapshot(&super::only_bucket(item)).await.ok()?
}

async fn until_warm(line: &Line, item: &ItemId) {
    until("it is warm", async || {
        in_redis(line, item).await.filter(|bucket| bucket.standing().is_live())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_warmed_up_before_it_opens_without_a_command() {
    let mut line = Line::new().await;
    assert_eq!(line.config.reconciler.warm_lead(), LEAD);
    let (soon, later) = (opening("soon", LEAD - MINUTE), opening("later", LEAD + MINUTE));
    line.put(&soon).await;
    line.put(&later).await;
    line.start(Service::Reconciler);
    until_warm(&line, &soon.item).await;
    // By another reconciler too, and what is put while it runs.
    line.stop(Service::Reconciler).await;
    line.start(Service::Reconciler);
    let (next, now_open) = (opening("next", LEAD - MINUTE), sale("now-open", 5));
    line.put(&next).await;
    line.put(&now_open).await;
    until_warm(&line, &next.item).await;
    until_warm(&line, &now_open.item).await;
    let address = line.ingress().await;
    let mut ann = Buyer::new(address, "ann");
    assert_eq!(ann.buy_patiently("now-open", "key-1", 1).await.status, 202);
    ann.buy("next", "key-1", 1).await.assert_problem(403, "not_open", None);

    // All the while there was no reason for the one that opens later.
    assert_eq!(in_redis(&line, &later.item).await, None);
    let row = line.ledger.find_item(&later.item).await.expect("the ledger").expect("an item");
    assert_eq!(row.epoch, 0, "nobody has begun to warm it up");
    let earlier = Sale { window: soon.window, ..later.clone() };
    line.put(&earlier).await;
    until_warm(&line, &later.item).await;
    line.stop_all().await;
}
