//! Who waits is served in the order of coming.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use shared::config::limits::LOCK_PLACES;
use tokio::task::JoinHandle;

use super::{Door, LONG, SOON};
use crate::eventually::eventually;

/// Until so many have a place.
async fn queued(door: &Door, places: u32) {
    let queued = async || (door.holder().await.waiting == places).then_some(());
    eventually("they have their places", SOON, queued).await;
}

/// Waits for the lock, notes its name, and frees it.
fn waiter(door: &Door, name: usize, served: &Arc<Mutex<Vec<usize>>>) -> JoinHandle<()> {
    let (door, served) = (door.another(), Arc::clone(served));
    tokio::spawn(async move {
        let lock = door.lock(LONG, LONG).await.expect("its turn comes");
        served.lock().expect("no panic").push(name);
        lock.release().await;
    })
}

#[tokio::test]
async fn who_waits_is_served_in_the_order_of_coming() {
    let door = Door::new().await;
    let lock = door.locked(LONG).await;
    let served = Arc::default();
    let mut waiters = Vec::new();
    for name in 0..5 {
        waiters.push(waiter(&door, name, &served));
        queued(&door, name as u32 + 1).await;
    }
    lock.release().await;
    join_all(waiters).await;
    assert_eq!(*served.lock().expect("no panic"), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn who_came_first_gets_it_first_although_others_keep_coming() {
    let door = Door::new().await;
    let lock = door.locked(LONG).await;
    let served = Arc::default();
    let first = waiter(&door, 0, &served);
    queued(&door, 1).await;
    let pushers: Vec<_> = (0..8)
        .map(|name| {
            let (door, served) = (door.another(), Arc::clone(&served));
            tokio::spawn(async move {
                // Some ask once and again, some wait for a moment each time.
                let wait = Duration::from_millis(if name % 2 == 0 { 0 } else { 60 });
                loop {
                    if let Ok(lock) = door.lock(LONG, wait).await {
                        served.lock().expect("no panic").push(name + 1);
                        lock.release().await;
                    }
                }
            })
        })
        .collect();
    let pushed = async || (door.holder().await.waiting > 1).then_some(());
    eventually("others have come", SOON, pushed).await;
    lock.release().await;
    first.await.expect("its turn comes");
    assert_eq!(served.lock().expect("no panic").first(), Some(&0));
    // They still get their turn, now that nobody is before them.
    let others = async || (served.lock().expect("no panic").len() > 20).then_some(());
    eventually("the others are served", SOON, others).await;
    pushers.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn who_goes_away_while_waiting_keeps_nobody_waiting() {
    let door = Door::new().await;
    let lock = door.locked(LONG).await;
    let gone = waiter(&door, 0, &Arc::default());
    queued(&door, 1).await;
    let patient = waiter(&door, 1, &Arc::default());
    queued(&door, 2).await;
    // The one leaves without a word, the other gives up.
    gone.abort();
    assert!(gone.await.expect_err("aborted").is_cancelled());
    let impatient = door.another().lock(LONG, Duration::from_millis(60)).await;
    assert!(impatient.is_err(), "it is taken all the while");
    lock.release().await;
    let served = async || patient.is_finished().then_some(());
    eventually("its turn comes", SOON, served).await;
    patient.await.expect("served");
    assert_eq!(door.raw("EXISTS", "waiting"), ":0", "nobody is left in the queue");
}

#[tokio::test]
async fn the_queue_is_bounded_and_all_are_served() {
    let door = Door::new().await;
    let lock = door.locked(LONG).await;
    let served = Arc::default();
    let places = LOCK_PLACES as u32;
    let crowd: Vec<_> = (0..LOCK_PLACES + 16).map(|name| waiter(&door, name, &served)).collect();
    queued(&door, places).await;
    lock.release().await;
    let most = async || {
        let standing: u32 = door.raw("HLEN", "waiting")[1..].parse().expect("a number");
        assert!(standing <= places, "{standing} have a place");
        (served.lock().expect("no panic").len() == LOCK_PLACES + 16).then_some(())
    };
    eventually("everybody is served", LONG, most).await;
    join_all(crowd).await;
}
