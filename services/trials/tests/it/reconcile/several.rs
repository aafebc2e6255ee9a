//! Several who reconcile at once correct once.

use reconciler::Mode;
use trials::buyer::at_once;
use trials::line::{Line, Service, limited, sale};
use trials::messages::hold;
use trials::until::until;
use uuid::Uuid;

use super::corrections;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_who_correct_at_once_correct_once() {
    let shoes = limited("shoe", 100, 2);
    let line = Line::new().await;
    line.sell(&shoes).await;
    for number in 0..20 {
        hold(&line, &shoes.item, &format!("buyer-{number}"), "key-1").await;
    }
    let mut clerks = Vec::new();
    for _ in 0..3 {
        clerks.push(line.clerk().await);
    }
    line.reconcile(&shoes.item).await;
    let mut expected = Vec::new();
    for round in 0..10 {
        let drift = if round % 2 == 0 { -7 } else { 7 };
        line.drift(&shoes.item, drift);
        let at_work = clerks.iter().cloned().map(|clerk| {
            let item = shoes.item.clone();
            async move { clerk.reconcile(&item, Mode::Apply).await }
        });
        for reconciled in at_once(at_work).await {
            let reconciled = reconciled.expect("whoever waits for the lock gets it in time");
            assert!(reconciled.agrees(), "{reconciled:?}");
        }
        expected.insert(0, (None, -drift));
        assert_eq!(corrections(&line, &shoes.item).await, expected, "round {round}");
        assert_eq!(line.available(&shoes.item).await, 80, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_reconcilers_correct_once() {
    let shoes = sale("shoe", 100);
    let mut line = Line::new().await;
    line.sell(&shoes).await;
    for _ in 0..3 {
        line.start(Service::Reconciler);
    }
    line.drift(&shoes.item, -7);
    // Whatever an operator changes is a reason for each of them to compare at once.
    until("one of them has corrected", async || {
        let pause = Uuid::new_v4();
        line.ledger.pause(&shoes.item, pause, "a trial").await.expect("paused");
        line.ledger.resume(&shoes.item, pause).await.expect("resumed");
        (!corrections(&line, &shoes.item).await.is_empty()).then_some(())
    })
    .await;
    // They stop when they have done what they had begun.
    line.stop_everything().await;
    assert_eq!(corrections(&line, &shoes.item).await, [(None, 7)]);
    assert_eq!(line.available(&shoes.item).await, 100);
}
