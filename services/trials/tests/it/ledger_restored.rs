//! The ledger goes back in time: somebody restores it, or a standby takes over that lags. Redis still
//! knows what was confirmed, and nothing of that is sold again.

use std::path::Path;
use std::time::Duration;

use reconciler::{Address, Mode, Reconciled, reconcile};
use shared::backends::Backends;
use shared::domain::{Cause, ItemId, OrderState};
use shared::ledger::FindingKind;
use trials::buyer::{Answer, Buyer};
use trials::line::{Line, Service, limited, sale};
use trials::processes::{Manning, Process};
use trials::stack::{Scratch, command, own_redis};
use trials::throng::Throng;
use trials::until::{PATIENCE, until};

const SOON: Duration = Duration::from_millis(500);

/// Lays a copy of the ledger aside, inside it.
const COPY: &str = "
    DROP TABLE IF EXISTS items_then, orders_then;
    CREATE TABLE items_then AS TABLE items;
    CREATE TABLE orders_then AS TABLE orders;";

/// Puts the copy back, as a restore does: epochs, fences and times go back as well.
const RESTORE: &str = "
    BEGIN;
    LOCK TABLE items, orders IN ACCESS EXCLUSIVE MODE;
    CREATE TABLE orders_lost AS
        SELECT * FROM orders WHERE request_id NOT IN (SELECT request_id FROM orders_then);
    DELETE FROM orders;
    INSERT INTO orders SELECT * FROM orders_then;
    UPDATE items SET available = t.available, epoch = t.epoch, fence = t.fence,
        version = t.version, decided_until = t.decided_until, decided_at = t.decided_at,
        changed_at = t.changed_at
    FROM items_then t WHERE t.item_id = items.item_id;
    COMMIT;";

/// Fails unless every order that was lost is there again, under its own reservation id.
const ALL_CAME_BACK: &str = "
    DO $$ BEGIN
        IF (SELECT count(*) FROM orders_lost WHERE state = 'confirmed') = 0 OR EXISTS (
            SELECT request_id, reservation_id, buyer_id, quantity, state
            FROM orders_lost WHERE state = 'confirmed'
            EXCEPT
            SELECT request_id, reservation_id, buyer_id, quantity, state FROM orders
        ) THEN RAISE EXCEPTION 'lost orders did not come back'; END IF;
    END $$;";

async fn once(line: &Line, item: &ItemId, mode: Mode) -> Reconciled {
    let backends = Backends::open(&line.config, "trial").expect("good settings");
    let environment = line.ledger.environment().await.expect("the ledger");
    let address = Address { environment, partitions: line.config.rabbitmq.partitions };
    until("it is compared", async || reconcile(&backends, &address, item, mode).await.ok()).await
}

/// Units that were found missing in the ledger, comparison by comparison.
async fn found_behind(line: &Line, item: &ItemId) -> Vec<i64> {
    let findings = line.ledger.findings(item, 1_000).await.expect("the ledger");
    let behind = findings.into_iter().map(|(_, finding)| finding);
    behind
        .filter(|finding| finding.kind == FindingKind::LedgerBehind)
        .map(|finding| finding.difference)
        .collect()
}

/// Goes on as long as it is asked to: Redis never offers a unit that it knows to be sold.
async fn never_raised(line: &Line, item: &ItemId, total: u64) {
    loop {
        let now = line.snapshot(item).await;
        assert!(now.available + now.held + now.confirmed_units <= total, "{now:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_from_before_the_sale_is_noticed_in_mid_sale_and_gets_its_orders_back() {
    const UNITS: u64 = 500;
    let shoes = sale("shoe", UNITS);
    let mut line = Line::new().await;
    line.put(&shoes).await;
    line.ledger.meddle(COPY).await.expect("copied");
    line.warm(&shoes.item).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let scratch = Scratch::create();
    let program = Path::new(env!("CARGO_BIN_EXE_trial"));
    let manning = Manning { program, dir: scratch.path(), first_look: SOON, config: &line.config };
    let reconciler = Process::alone(Service::Reconciler, manning).await;
    reconciler.does(|reconciler| reconciler.start(None)).await;
    let throng = Throng::begin(address, "shoe");
    throng.until_more(PATIENCE).await;
    throng.until_more(PATIENCE).await;

    line.ledger.meddle(RESTORE).await.expect("restored");
    let coming_back = async {
        until("it is reported", async || {
            found_behind(&line, &shoes.item).await.first().copied().filter(|units| *units > 0)
        })
        .await;
        until("the orders come back", async || line.ledger.meddle(ALL_CAME_BACK).await.ok()).await;
        throng.until_told("sold_out").await;
    };
    tokio::select! {
        () = coming_back => {}
        () = never_raised(&line, &shoes.item, UNITS) => {}
    }
    let told = throng.problems();
    assert!(told.iter().all(|code| ["sold_out", "frozen"].contains(&code.as_str())), "{told:?}");
    let ends = throng.end().await;
    let books = line.until_lawful(&shoes.item).await;
    assert_eq!((ends.confirmed, ends.rejected, books.confirmed_units), (UNITS, 0, UNITS));
    reconciler.does(|reconciler| reconciler.stop()).await;
    let log = reconciler.log();
    let error = log.lines().find(|line| line.contains("lacks confirmed orders"));
    assert!(error.is_some_and(|line| line.contains(" ERROR ")), "{log}");
    let row = line.ledger.find_item(&shoes.item).await.expect("the ledger").expect("the item");
    let seen = line.snapshot(&shoes.item).await;
    assert_eq!((row.epoch, seen.epoch), (1, 1), "it caught up, and nothing was built anew");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_a_ledger_has_lost_are_listed_and_published_again_and_nothing_is_raised() {
    let shoes = limited("shoe", 40, 3);
    let (mut line, address) = Line::selling(&shoes).await;
    let buy = async |buyer: &mut Buyer, key: &str| -> Answer {
        let accepted = buyer.buy("shoe", key, 1).await;
        assert_eq!(buyer.final_state(&accepted).await, "confirmed");
        accepted
    };
    let (mut ann, mut bob) = (Buyer::new(address, "ann"), Buyer::new(address, "bob"));
    buy(&mut ann, "key-1").await;
    line.until_settled(&shoes.item).await;
    line.ledger.meddle(COPY).await.expect("copied");
    let mut lost = Vec::new();
    for key in ["key-2", "key-3"] {
        lost.push(buy(&mut ann, key).await.request_id());
    }
    lost.push(buy(&mut bob, "key-1").await.request_id());
    line.until_settled(&shoes.item).await;
    line.stop(Service::Consumer).await;
    line.ledger.meddle(RESTORE).await.expect("restored");

    // As many are sold since as were lost, and Redis has not heard of them yet: that hides nothing.
    let mut carol = Buyer::new(address, "carol");
    let mut waiting = Vec::new();
    for key in ["key-1", "key-2", "key-3"] {
        assert_eq!(carol.buy("shoe", key, 1).await.status, 202);
        waiting.push(trials::messages::reservation_of(&line, &shoes.item, "carol", key).await);
    }
    line.ledger.commit(&waiting).await.expect("committed");
    let before = line.snapshot(&shoes.item).await;

    let plan = once(&line, &shoes.item, Mode::Plan).await;
    assert_eq!((plan.found.ledger_behind, plan.found.added, plan.republished), (3, 0, 0));
    assert!(!plan.agrees());
    let causes = plan.causes.expect("a plan looks for causes");
    let mut named: Vec<_> = causes
        .requests
        .iter()
        .filter(|(_, cause, _)| *cause == Cause::LostByLedger)
        .map(|(request_id, ..)| *request_id)
        .collect();
    named.sort();
    lost.sort();
    assert_eq!(named, lost);
    assert_eq!(line.snapshot(&shoes.item).await.available, before.available);

    let applied = once(&line, &shoes.item, Mode::Apply).await;
    assert_eq!((applied.found.ledger_behind, applied.found.added, applied.republished), (3, 0, 3));
    assert_eq!(found_behind(&line, &shoes.item).await, [3, 3]);
    let after = line.snapshot(&shoes.item).await;
    assert_eq!(after.available, before.available, "nothing is raised");
    // Ann has had her three, whatever the ledger says for the moment.
    ann.buy("shoe", "key-4", 1).await.assert_problem(409, "limit_reached", None);

    line.start(Service::Consumer);
    until("the orders come back", async || line.ledger.meddle(ALL_CAME_BACK).await.ok()).await;
    line.until_settled(&shoes.item).await;
    assert!(once(&line, &shoes.item, Mode::Apply).await.agrees());
    assert_eq!(line.assert_law(&shoes.item).await.confirmed_units, 7);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_remembers_is_raised_only_when_an_operator_vouches_for_the_ledger() {
    let redis = own_redis();
    let shoes = limited("shoe", 10, 2);
    let mut line = Line::new().await;
    line.move_to_redis(&redis.backend.url());
    line.sell(&shoes).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    let (mut ann, mut bob) = (Buyer::new(address, "ann"), Buyer::new(address, "bob"));
    let kept = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(ann.final_state(&kept).await, "confirmed");
    line.until_settled(&shoes.item).await;
    line.ledger.meddle(COPY).await.expect("copied");
    let mut records = Vec::new();
    for (buyer, key) in [(&mut ann, "key-2"), (&mut bob, "key-1")] {
        let accepted = buyer.buy("shoe", key, 1).await;
        assert_eq!(buyer.final_state(&accepted).await, "confirmed");
        records.push(accepted.request_id());
    }
    line.until_settled(&shoes.item).await;
    line.ledger.meddle(RESTORE).await.expect("restored");
    for request_id in records {
        let key = format!("{}:{{shoe#0}}:hold:{request_id}", line.config.namespace);
        command(&redis.backend, &format!("SET {key} gone PX 1"));
    }

    let applied = once(&line, &shoes.item, Mode::Apply).await;
    assert_eq!((applied.found.ledger_behind, applied.found.added, applied.republished), (2, 0, 0));
    assert_eq!(line.available(&shoes.item).await, 7);
    let raised = once(&line, &shoes.item, Mode::ApplyRestoredLedger).await;
    assert_eq!((raised.found.ledger_behind, raised.found.units, raised.found.added), (2, 2, 2));
    assert_eq!(line.available(&shoes.item).await, 9);
    // From now on it is as if that had never been sold, and nothing is distrusted any more.
    assert!(once(&line, &shoes.item, Mode::Apply).await.agrees());
    let accepted = bob.buy("shoe", "key-1", 2).await;
    assert_eq!(bob.final_state(&accepted).await, "confirmed");
    let order = line.ledger.find_order(accepted.request_id()).await.expect("the ledger");
    assert_eq!(order.expect("an order").state, OrderState::Confirmed);
    line.until_settled(&shoes.item).await;
    assert!(once(&line, &shoes.item, Mode::Apply).await.agrees());
    assert_eq!(line.assert_law(&shoes.item).await.confirmed_units, 3);
    line.stop_all().await;
}
