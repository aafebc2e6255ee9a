//! Corrections do not starve purchases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reconciler::Mode;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited};
use trials::until::{Waiting, until};

use super::corrections;

const BUYERS: usize = 60;
const UNITS: u64 = 400;
const PURCHASES: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_purchase_is_answered_while_the_item_is_corrected_without_pause() {
    let shoes = limited("shoe", UNITS, 8);
    let (mut line, first) = Line::selling(&shoes).await;
    let second = line.ingress().await;
    line.start(Service::Reconciler);
    let (clerk, item, config) = (line.clerk().await, shoes.item.clone(), line.config.clone());
    let (enough, compared) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let correcting = {
        let (enough, compared) = (Arc::clone(&enough), Arc::clone(&compared));
        tokio::spawn(async move {
            let from_outside = Line::of(config);
            let mut drifts = 0_i64;
            while !enough.load(Ordering::Relaxed) {
                // Always something to correct: a unit too few, then a unit too many.
                from_outside.drift(&item, if drifts % 2 == 0 { -1 } else { 1 });
                drifts += 1;
                let _ = clerk.reconcile(&item, Mode::Apply).await;
                compared.fetch_add(1, Ordering::Relaxed);
            }
            let waiting = Waiting::for_at_most(trials::until::PATIENCE);
            while !clerk.reconcile(&item, Mode::Apply).await.is_ok_and(|one| one.agrees()) {
                waiting.a_moment("the last drift is corrected").await;
            }
        })
    };
    until("corrections have begun", async || (compared.load(Ordering::Relaxed) > 0).then_some(()))
        .await;

    let answered = at_once((0..BUYERS).map(|number| async move {
        let address = if number % 2 == 0 { first } else { second };
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let (mut accepted, mut put_off) = (Vec::new(), 0);
        for purchase in 0..PURCHASES {
            let key = format!("key-{purchase}");
            let waiting = Waiting::for_at_most(trials::until::PATIENCE);
            loop {
                let answer = buyer.buy("shoe", &key, 1).await;
                match answer.status {
                    202 => accepted.push(answer),
                    409 => {}
                    503 => {
                        assert_eq!(answer.body["retryable"], true, "{answer:?}");
                        put_off += 1;
                        waiting.a_moment("the same key is answered in the end").await;
                        continue;
                    }
                    _ => panic!("{answer:?}"),
                }
                break;
            }
        }
        (buyer, accepted, put_off)
    }))
    .await;
    enough.store(true, Ordering::Relaxed);
    correcting.await.expect("no panic");

    let mut accepted = 0;
    for (mut buyer, answers, _) in answered {
        for answer in answers {
            let state = buyer.final_state(&answer).await;
            // A unit that was there from outside only may have been promised.
            assert!(["confirmed", "rejected"].contains(&state.as_str()), "{state}");
            accepted += u64::from(state == "confirmed");
        }
    }
    line.until_settled(&shoes.item).await;
    line.reconcile(&shoes.item).await;
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, accepted);
    assert!(!corrections(&line, &shoes.item).await.is_empty());
    line.stop_all().await;
}
