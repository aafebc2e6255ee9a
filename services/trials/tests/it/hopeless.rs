//! One bad reservation among good ones, and a ledger in trouble: nothing healthy is ever parked.

use shared::config::Config;
use shared::domain::Reservation;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, sale};
use trials::messages::{Post, reservation};
use trials::until::until;
use uuid::Uuid;

const NO_BAD_BUYERS: &str = "ALTER TABLE orders ADD CHECK (buyer_id <> 'bad')";

/// Ninety-nine good reservations with a bad one among them.
fn with_one_bad(shoes: &shared::domain::Sale) -> Vec<Reservation> {
    let buyer = |number| if number == 42 { "bad".to_owned() } else { format!("buyer-{number}") };
    (0..100).map(|number| reservation(&shoes.item, &buyer(number), "key-1", 1)).collect()
}

async fn ninety_nine_are_confirmed_and_one_is_parked(reservations_a_message: usize) {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 200);
    line.sell(&shoes).await;
    line.ledger.meddle(NO_BAD_BUYERS).await.expect("meddled");
    let mut post = Post::of(&line).await;
    for message in with_one_bad(&shoes).chunks(reservations_a_message) {
        post.place(message).await;
    }
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    let letters = post.flush().await;
    assert_eq!(letters.len(), 1, "one letter, with the bad one alone in it");
    let letter = String::from_utf8_lossy(&letters[0]).into_owned();
    assert_eq!(letter.matches("reservation_id").count(), 1, "{letter}");
    assert!(letter.contains("\"bad\""), "{letter}");
    let orders = line.ledger.count_orders(&shoes.item).await.expect("the orders");
    assert_eq!((orders.confirmed, orders.rejected, orders.expired), (99, 0, 0));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_reservation_in_a_message_of_a_hundred_is_parked_alone() {
    ninety_nine_are_confirmed_and_one_is_parked(100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_message_among_a_hundred_is_parked_alone() {
    ninety_nine_are_confirmed_and_one_is_parked(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_bad_reservations_in_a_row_stop_the_consumer() {
    let mut line = Line::new().await;
    let shoes = sale("shoe", 200);
    line.sell(&shoes).await;
    line.ledger
        .meddle("ALTER TABLE orders ADD CHECK (quantity < 0) NOT VALID")
        .await
        .expect("meddled");
    let post = Post::of(&line).await;
    let all: Vec<_> = (0..1_000)
        .map(|number| reservation(&shoes.item, &format!("buyer-{number}"), "key-1", 1))
        .collect();
    for message in all.chunks(10) {
        post.place(message).await;
    }
    line.start(Service::Consumer);
    let reason = line.until_ended(Service::Consumer).await.expect_err("it stops");
    assert!(reason.contains("20 reservations in a row"), "{reason}");
    assert!(reason.contains("lastunit migrate"), "it says what to do: {reason}");
    line.stop_all().await;
}

/// A transaction of the consumer's ended with an error.
const WAS_MET: &str = "
    DO $$ BEGIN
        IF NOT EXISTS (
            SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND query = 'ROLLBACK' AND pid <> pg_backend_pid()
        ) THEN RAISE EXCEPTION 'nobody met the trouble yet'; END IF;
    END $$;";

/// The ledger gets into trouble in mid-sale, and out of it again.
async fn nothing_is_parked(trouble: &str, remedy: &str) {
    let line = Line::new().await;
    let consumers = line.config.clone();
    nothing_is_parked_by(line, consumers, trouble, remedy).await;
}

/// The same with consumers that have settings of their own.
async fn nothing_is_parked_by(mut line: Line, consumers: Config, trouble: &str, remedy: &str) {
    const BUYERS: usize = 60;
    let shoes = sale("shoe", BUYERS as u64);
    line.sell(&shoes).await;
    let address = line.ingress().await;
    line.start_with(Service::Consumer, consumers);
    line.start(Service::Compensator);
    let mut first = Buyer::new(address, "first");
    let accepted = first.buy_patiently("shoe", "key-1", 1).await;
    assert_eq!(first.final_state(&accepted).await, "confirmed");

    line.ledger.meddle(trouble).await.expect("trouble");
    let accepted = at_once((1..BUYERS).map(|number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let accepted = buyer.buy_patiently("shoe", "key-1", 1).await;
        assert_eq!(accepted.status, 202, "selling does not need the ledger: {accepted:?}");
        (buyer, accepted)
    }))
    .await;
    let orders = line.ledger.count_orders(&shoes.item).await.map(|orders| orders.confirmed);
    assert!(orders.is_err() || orders.is_ok_and(|orders| orders < BUYERS as u64));

    until("the trouble is met", async || line.ledger.meddle(WAS_MET).await.ok()).await;
    line.ledger.meddle(remedy).await.expect("a remedy");
    for (mut buyer, accepted) in accepted {
        assert_eq!(buyer.final_state(&accepted).await, "confirmed");
    }
    let books = line.assert_law(&shoes.item).await;
    assert_eq!(books.confirmed_units, BUYERS as u64);
    let mut post = Post::of(&line).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new(), "nothing was parked");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_turns_read_only_parks_nothing() {
    let set = |value| {
        format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}',
                current_database()); END $$;"
        )
    };
    // Committed before anybody connects again: sessions keep what they met when they began.
    let reconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();";
    let trouble = format!("BEGIN; {} COMMIT; {reconnect}", set("on"));
    // Nobody ends the sessions that began read-only. The remedy's own may be one of them.
    let remedy = format!("SET transaction_read_only = off; {}", set("off"));
    nothing_is_parked(&trouble, &remedy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_loses_a_column_parks_nothing() {
    nothing_is_parked(
        "ALTER TABLE orders RENAME COLUMN reserved_at TO lost",
        "ALTER TABLE orders RENAME COLUMN lost TO reserved_at",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_loses_a_table_parks_nothing() {
    nothing_is_parked("ALTER TABLE orders RENAME TO lost", "ALTER TABLE lost RENAME TO orders")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_takes_a_grant_away_parks_nothing() {
    let line = Line::new().await;
    // A role of its own: whoever owns the tables needs no grants.
    let role = format!("seller_{}", Uuid::new_v4().simple());
    let grants = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'seller';
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {role}"
    );
    line.ledger.meddle(&grants).await.expect("a role");
    let mut consumers = line.config.clone();
    let (_, host_and_path) = consumers.ledger.url.expose().split_once('@').expect("credentials");
    let url = format!("postgres://{role}:seller@{host_and_path}");
    consumers.ledger.url = url.parse().expect("a URL");
    nothing_is_parked_by(
        line,
        consumers,
        &format!("REVOKE INSERT ON orders FROM {role}"),
        &format!("GRANT INSERT ON orders TO {role}"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_runs_out_of_disk_parks_nothing() {
    // With the code that PostgreSQL gives when a file cannot grow.
    nothing_is_parked(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON orders EXECUTE FUNCTION full_disk()",
        "DROP TRIGGER full_disk ON orders",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_confirmed_order_changes_nothing_however_often_it_comes() {
    let shoes = sale("shoe", 10);
    let (mut line, _) = Line::selling(&shoes).await;
    line.start(Service::Consumer);
    let mut post = Post::of(&line).await;
    let sold = reservation(&shoes.item, "ann", "key-1", 1);
    for _ in 0..300 {
        post.place(std::slice::from_ref(&sold)).await;
    }
    until("it is decided", async || {
        line.ledger.find_order(sold.request_id).await.expect("the ledger")
    })
    .await;
    line.stop(Service::Consumer).await;
    line.start(Service::Consumer);
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let orders = line.ledger.count_orders(&shoes.item).await.expect("the orders");
    assert_eq!((orders.confirmed, orders.rejected, orders.expired), (1, 0, 0));
    let item = line.ledger.find_item(&shoes.item).await.expect("the ledger").expect("the item");
    assert_eq!(item.available, 9);
    line.stop_all().await;
}
