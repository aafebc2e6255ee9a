//! Whoever moves units between buckets may die at every step, or be overtaken: no unit is there twice,
//! none is missing, and all of them sell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shared::domain::ItemId;
use shared::stock::{Bucket, InReply, Layout, NotNow, OutReply, Transfer};
use trials::buyer::Buyer;
use trials::line::{Line, Service, sale, until_ready};
use trials::processes::{Manning, Process};
use trials::stack::Scratch;

use super::{buys, count, decide, selling, who_lives_in};
use crate::reconcile::{resumed, stopped_at};

const SOON: Duration = Duration::from_millis(500);

/// A service as a process of its own.
async fn man(service: Service, line: &Line, scratch: &Scratch) -> Arc<Process> {
    let program = Path::new(env!("CARGO_BIN_EXE_trial"));
    let manning = Manning { program, dir: scratch.path(), first_look: SOON, config: &line.config };
    Process::alone(service, manning).await
}

/// Somebody needs units of other buckets, and the ingress that fetches them dies. Two units are in
/// each of the four buckets.
async fn ingress_dies_at(point: &'static str) {
    let shoes = sale("shoe", 8);
    let (mut line, [door, other]) = selling(&shoes, 4).await;
    decide(&mut line);
    let scratch = Scratch::create();
    let victim = man(Service::Ingress, &line, &scratch).await;
    victim.does(move |victim| victim.start(Some(point.to_owned()))).await;
    until_ready(victim.address).await;
    let mut eve = Buyer::new(victim.address, "eve");
    assert!(eve.try_buy("shoe", "key-1", 5).await.is_err(), "nobody is left to answer");
    victim.until_dead().await;
    let redis = line.snapshot(&shoes.item).await;
    assert!(redis.moving > 0, "cut short: {redis:?}");
    // Those that came are counted where they are and where they left.
    assert!(redis.available + redis.moving >= 8 && redis.held == 0, "{redis:?}");

    line.start(Service::Reconciler);
    buys(door, "eve", "key-1", 5).await;
    for number in 0..3 {
        buys(other, &format!("buyer-{number}"), "key-1", 1).await;
    }
    for door in [door, other] {
        let late = Buyer::new(door, "late").buy_patiently("shoe", "key-1", 1).await;
        late.assert_problem(409, "sold_out", None);
    }
    let books = line.until_lawful(&shoes.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (8, Some(0)), "died at {point}");
    assert_eq!(line.snapshot(&shoes.item).await.moving, 0, "died at {point}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ingress_may_die_at_every_step_of_a_transfer() {
    tokio::join!(
        ingress_dies_at("ingress.transfer_out"),
        ingress_dies_at("ingress.transfer_out:2"),
        ingress_dies_at("ingress.transfer_in"),
        ingress_dies_at("ingress.transfer_in:2"),
    );
}

/// Moves of an item, by hand.
struct Carrier<'a> {
    line: &'a Line,
    item: &'a ItemId,
    layout: Layout,
}

impl Carrier<'_> {
    fn bucket(&self, number: u16) -> Bucket {
        Bucket { item: self.item.clone(), number }
    }

    async fn ask(&self, from: u16, to: u16, units: u64) -> OutReply {
        let donor = self.bucket(from);
        let left = self.line.stock.transfer_out(&donor, self.layout, to, units).await;
        left.expect("an answer")
    }

    async fn send(&self, from: u16, to: u16, units: u64) -> Transfer {
        match self.ask(from, to, units).await {
            OutReply::Out(transfer) => transfer,
            other => panic!("nothing has left: {other:?}"),
        }
    }

    async fn bring(&self, transfer: &Transfer) -> InReply {
        let home = self.bucket(transfer.home);
        let reply = self.line.stock.transfer_in(&home, self.layout, transfer).await;
        reply.expect("an answer")
    }

    async fn forget(&self, from: u16, transfer: &Transfer) {
        let done = self.line.stock.transfer_done(&self.bucket(from), transfer).await;
        done.expect("an answer");
    }

    /// Units available, units moving.
    async fn units(&self) -> (u64, u64) {
        let redis = self.line.snapshot(self.item).await;
        (redis.available, redis.moving)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_may_die_between_judging_a_transfer_and_finishing_it() {
    let shoes = sale("shoe", 9);
    let (mut line, [door, _]) = selling(&shoes, 3).await;
    decide(&mut line);
    let (item, layout) = (&shoes.item, Layout { epoch: 1, buckets: count(3) });
    let carrier = Carrier { line: &line, item, layout };
    let came = carrier.send(0, 1, 2).await;
    assert_eq!(carrier.bring(&came).await, InReply::Came);
    let lost = carrier.send(2, 1, 3).await;
    assert_eq!(carrier.units().await, (6, 5));
    for point in ["reconciler.transfer", "reconciler.transfer:2"] {
        let scratch = Scratch::create();
        let victim = man(Service::Reconciler, &line, &scratch).await;
        victim.does(move |victim| victim.start(Some(point.to_owned()))).await;
        victim.until_dead().await;
        assert!(carrier.units().await.1 > 0, "nobody has finished: {point}");
    }
    let mut line = line;
    line.start(Service::Reconciler);
    let books = line.until_lawful(item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (0, Some(9)));
    let carrier = Carrier { line: &line, item, layout };
    assert_eq!(carrier.bring(&lost).await, InReply::Void, "it went back");
    assert_eq!(carrier.bring(&came).await, InReply::Came, "it came long ago");
    assert_eq!(carrier.units().await, (9, 0));
    buys(door, "all", "key-1", 9).await;
    let books = line.assert_law(item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (9, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_meets_a_correction_is_finished_by_it() {
    let shoes = sale("shoe", 9);
    let (mut line, [door, _]) = selling(&shoes, 3).await;
    decide(&mut line);
    let (item, layout) = (&shoes.item, Layout { epoch: 1, buckets: count(3) });
    let carrier = Carrier { line: &line, item, layout };
    let came = carrier.send(0, 1, 2).await;
    assert_eq!(carrier.bring(&came).await, InReply::Came);
    let late = carrier.send(2, 1, 3).await;
    // What came and was not forgotten looks like two units too many, and is looked at under a freeze.
    let (process, _scratch) = stopped_at(&line, item, "reconciler.frozen").await;
    assert_eq!(carrier.bring(&late).await, InReply::NotNow(NotNow::Frozen));
    assert_eq!(carrier.ask(1, 0, 1).await, OutReply::NotNow(NotNow::Frozen));
    assert_eq!(resumed(&process).await, "corrected 0 of 0");
    assert_eq!(carrier.units().await, (9, 0));
    assert_eq!(carrier.bring(&late).await, InReply::Void);
    carrier.forget(2, &late).await;
    assert_eq!(carrier.bring(&came).await, InReply::Came);
    carrier.forget(0, &came).await;
    assert_eq!(carrier.units().await, (9, 0), "nothing twice, nothing missing");

    // A unit too many from outside is found although units are on their way.
    line.drift(item, 1);
    let late = carrier.send(1, 0, 4).await;
    let reconciled = line.reconcile(item).await;
    assert_eq!((reconciled.found.units, reconciled.found.added), (-1, -1));
    assert_eq!(carrier.bring(&late).await, InReply::Void);
    assert_eq!(carrier.units().await, (9, 0));
    for turn in 0..3 {
        buys(door, &who_lives_in(1, 3, turn), "key-1", 3).await;
    }
    let books = line.assert_law(item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (9, Some(0)));
    line.stop_all().await;
}
