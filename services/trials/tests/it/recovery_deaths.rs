//! A reconciler dies while it makes Redis agree with the ledger, and another one finishes that.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::block_in_place;
use trials::buyer::Buyer;
use trials::line::{Line, Service, limited};
use trials::messages::{Post, hold, reservation};
use trials::processes::{Manning, Process};
use trials::stack::{Scratch, own_redis, write_only_this};
use trials::until::until;

const SOON: Duration = Duration::from_millis(500);

/// A reconciler as a process of its own, that dies here.
async fn dies_at(point: &'static str, line: &Line, scratch: &Scratch) -> Arc<Process> {
    let program = Path::new(env!("CARGO_BIN_EXE_trial"));
    let manning = Manning { program, dir: scratch.path(), first_look: SOON, config: &line.config };
    let victim = Process::alone(Service::Reconciler, manning).await;
    victim.does(move |victim| victim.start(Some(point.to_owned()))).await;
    victim.until_dead().await;
    victim
}

/// Dies while an item comes back that Redis has only an old dump of.
async fn dies_recovering(point: &'static str) {
    let mut redis = own_redis();
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.hurry(SOON);
    let shoes = limited("shoe", 10, 2);
    line.sell(&shoes).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let mut ann = Buyer::new(address, "ann");
    let before = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(ann.final_state(&before).await, "confirmed");
    // Taken and never published; the dump knows it.
    hold(&line, &shoes.item, "ghost", "key-1").await;
    write_only_this(&redis.backend);
    // The dump does not know this one.
    let since = ann.buy("shoe", "key-2", 1).await;
    assert_eq!(ann.final_state(&since).await, "confirmed");
    block_in_place(|| {
        redis.backend.kill().expect("killed");
        redis.backend.restart().expect("Redis");
    });

    let scratch = Scratch::create();
    dies_at(point, &line, &scratch).await;
    let mut bob = Buyer::new(address, "bob");
    bob.buy("shoe", "key-1", 1).await.assert_problem(503, "not_ready", None);
    line.start(Service::Reconciler);
    let accepted = bob.buy_patiently("shoe", "key-1", 1).await;
    assert_eq!(bob.final_state(&accepted).await, "confirmed", "died at {point}");
    ann.buy("shoe", "key-3", 1).await.assert_problem(409, "limit_reached", None);
    let books = line.until_lawful(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (4, Some(6)), "died at {point}");
    line.stop_all().await;
}

/// Dies while it corrects an item that sells a unit too many.
async fn dies_correcting(point: &'static str) {
    let mut line = Line::new().await;
    line.hurry(SOON);
    let shoes = limited("shoe", 10, 2);
    line.sell(&shoes).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    // An order without a hold, as a Redis leaves behind that forgot one.
    let unseen = reservation(&shoes.item, "eve", "key-1", 2);
    Post::of(&line).await.place(&[unseen]).await;
    until("Redis has heard of it", async || {
        (line.snapshot(&shoes.item).await.unseen == 1).then_some(())
    })
    .await;

    let scratch = Scratch::create();
    dies_at(point, &line, &scratch).await;
    line.start(Service::Reconciler);
    let books = line.until_lawful(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (2, Some(8)), "died at {point}");
    // The freeze of the dead one does not last.
    let mut ann = Buyer::new(address, "ann");
    let accepted = ann.buy_patiently("shoe", "key-1", 1).await;
    assert_eq!(ann.final_state(&accepted).await, "confirmed", "died at {point}");
    let mut eve = Buyer::new(address, "eve");
    eve.buy("shoe", "key-2", 1).await.assert_problem(409, "limit_reached", None);
    assert_eq!(line.assert_law(&shoes.item).await.redis_available, Some(7));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_may_die_between_settling_and_correcting_what_redis_lost() {
    dies_recovering("recover.settled").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_may_die_before_it_lets_a_recovered_item_sell() {
    dies_recovering("recover.corrected").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_may_die_at_every_step_of_a_correction() {
    // Side by side: each waits until the lock of the dead one is free. Nothing here blocks the others.
    tokio::join!(
        dies_correcting("reconciler.frozen"),
        dies_correcting("reconciler.compared"),
        dies_correcting("reconciler.corrected"),
    );
}
