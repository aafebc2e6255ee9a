//! Too early, too late, unknown, not prepared.

use std::time::Duration;

use shared::domain::Sale;
use trials::buyer::Buyer;
use trials::line::{Line, Service, now, sale, window};
use trials::until::until;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_on_sale_says_why_and_takes_nothing() {
    let later = Sale { window: window(now() + HOUR, now() + 2 * HOUR), ..sale("later", 5) };
    let over = Sale { window: window(now() - 2 * HOUR, now() - HOUR), ..sale("over", 5) };
    let cold = sale("cold", 5);
    let cold_later = Sale { window: later.window, ..sale("cold-later", 5) };
    let cold_over = Sale { window: over.window, ..sale("cold-over", 5) };
    let mut line = Line::new().await;
    line.sell(&later).await;
    line.sell(&over).await;
    for unwarmed in [&cold, &cold_later, &cold_over] {
        line.put(unwarmed).await;
    }
    let address = line.ingress().await;
    let mut ann = Buyer::new(address, "ann");

    for _ in 0..2 {
        ann.buy("later", "key-1", 1).await.assert_problem(403, "not_open", None);
        ann.buy("cold-later", "key-1", 1).await.assert_problem(403, "not_open", None);
        ann.buy("over", "key-1", 1).await.assert_problem(410, "ended", None);
        ann.buy("cold-over", "key-1", 1).await.assert_problem(410, "ended", None);
        ann.buy("cold", "key-1", 1).await.assert_problem(503, "not_warm", None);
        ann.buy("nowhere", "key-1", 1).await.assert_problem(404, "unknown_item", Some("item"));
    }
    for item in [&later.item, &over.item] {
        let redis = line.snapshot(item).await;
        assert_eq!((redis.available, redis.held), (5, 0), "{item}");
    }

    // The same key buys once the item is warm: nothing was written for the refusal.
    line.warm(&cold.item).await;
    let bought = ann.buy("cold", "key-1", 1).await;
    assert_eq!((bought.status, bought.is_replayed()), (202, false), "{bought:?}");
    line.start(Service::Consumer);
    assert_eq!(ann.final_state(&bought).await, "confirmed");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_opens_and_ends_by_itself_and_keeps_what_it_accepted() {
    let opens = now() + Duration::from_millis(1_500);
    let window = window(opens, opens + Duration::from_millis(1_500));
    let brief = Sale { window, ..sale("brief", 5) };
    let mut line = Line::new().await;
    line.sell(&brief).await;
    let address = line.ingress().await;
    let (mut ann, mut bob) = (Buyer::new(address, "ann"), Buyer::new(address, "bob"));

    let first = until("the sale opens", async || {
        let answer = ann.buy("brief", "key-1", 1).await;
        if answer.status == 403 {
            answer.assert_problem(403, "not_open", None);
            return None;
        }
        Some(answer)
    })
    .await;
    assert_eq!(first.status, 202, "{first:?}");
    assert!(now() >= opens, "nobody buys before the sale opens");
    let mut bobs = 0;
    until("the sale ends", async || {
        let answer = bob.buy("brief", &format!("key-{bobs}"), 5).await;
        bobs += 1;
        if answer.status == 410 {
            answer.assert_problem(410, "ended", None);
            return Some(());
        }
        answer.assert_problem(409, "sold_out", None);
        None
    })
    .await;

    // Accepted in time, decided and asked for after the end.
    let again = ann.buy("brief", "key-1", 1).await;
    assert_eq!((again.status, again.is_replayed()), (202, true), "{again:?}");
    line.start(Service::Consumer);
    assert_eq!(ann.final_state(&first).await, "confirmed");
    let again = ann.buy("brief", "key-1", 1).await;
    assert_eq!((again.status, again.text("status")), (200, "confirmed"), "{again:?}");
    assert_eq!(line.assert_law(&brief.item).await.confirmed_units, 1);
    line.stop_all().await;
}
