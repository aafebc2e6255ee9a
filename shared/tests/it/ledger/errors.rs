//! Errors say what was being done, to what, and what to do about it.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use shared::config;
use shared::devstack::PostgresRecipe;
use shared::ledger::{Ledger, LedgerError};

use super::{Books, Private, confirmed, item_id, reservation, sale};
use crate::eventually::eventually;

/// A port on which nobody listens.
fn dead_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn a_ledger_that_nobody_listens_for_is_unreachable_by_its_address() {
    let address = format!("127.0.0.1:{}", dead_port());
    let url = format!("postgres://shop:hush@{address}/lastunit").parse().expect("a URL");
    let ledger = Ledger::connect(&config::Ledger { url, connections: 1 }).expect("a URL");
    let since = Instant::now();
    let item = item_id("shoe");
    let one = [reservation("shoe", "ann", "1", 1)];
    let sale = sale("shoe", 1, None);
    let (environment, found, committed, warmed, put, migrated) = tokio::join!(
        ledger.environment(),
        ledger.find_item(&item),
        ledger.commit(&one),
        ledger.begin_warm(&item, 1, 0, None),
        ledger.put_item(&sale, None),
        ledger.migrate(),
    );
    let errors = [
        ("read the environment", environment.expect_err("nobody")),
        ("read an item", found.expect_err("nobody")),
        ("commit reservations", committed.expect_err("nobody")),
        ("begin a warm-up", warmed.expect_err("nobody")),
        ("put an item", put.expect_err("nobody")),
        ("migrate", migrated.expect_err("nobody")),
    ];
    for (doing, error) in errors {
        assert!(error.is_unreachable(), "{error}");
        let expected = format!("cannot reach the ledger at {address} to {doing}: ");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_database_without_tables_says_how_to_make_them() {
    let books = Books::new().await;
    // Every server has this one, and nobody migrates it.
    let url = books.config.url.with_path("postgres");
    let ledger = Ledger::connect(&config::Ledger { url, connections: 1 }).expect("a URL");
    let one = [reservation("shoe", "ann", "1", 1)];
    let errors = [
        ledger.environment().await.expect_err("no tables"),
        ledger.find_item(&item_id("shoe")).await.expect_err("no tables"),
        ledger.commit(&one).await.expect_err("no tables"),
    ];
    for error in errors {
        assert!(matches!(error, LedgerError::NotMigrated { .. }), "{error}");
        assert!(!error.is_unreachable());
        assert!(error.to_string().contains("run `lastunit migrate`"), "{error}");
        assert!(error.to_string().contains(&books.config.url.address()), "{error}");
    }
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_told_at_once() {
    let url = "postgres://db/lastunit?sslmode=maybe".parse().expect("a URL");
    let refused = Ledger::connect(&config::Ledger { url, connections: 1 });
    let error = refused.err().expect("no such mode").to_string();
    assert!(error.starts_with("ledger.url cannot be used: "), "{error}");
}

#[tokio::test]
async fn a_session_that_began_while_the_ledger_was_read_only_is_not_used_when_it_is_not_any_more() {
    let books = Books::selling(2, None).await;
    let read_only = async |value: &str| {
        let set = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}',
                current_database()); END $$"
        );
        books.ledger.meddle(&set).await.expect("obeyed");
    };
    read_only("on").await;
    let one_session = config::Ledger { connections: 1, ..books.config.clone() };
    let ledger = Ledger::connect(&one_session).expect("a URL");
    let one = [reservation("shoe", "ann", "1", 1)];
    let error = ledger.commit(&one).await.expect_err("read-only");
    assert!(error.to_string().contains("read-only"), "{error}");
    assert!(!error.is_permanent(), "{error}");
    read_only("off").await;
    assert_eq!(ledger.commit(&one).await.expect("writable"), [confirmed(&one[0])]);
}

#[tokio::test]
async fn statements_that_were_prepared_before_a_migration_are_prepared_again_after_it() {
    let books = Books::selling(2, None).await;
    let one_session = config::Ledger { connections: 1, ..books.config.clone() };
    let ledger = Ledger::connect(&one_session).expect("a URL");
    let one = [reservation("shoe", "ann", "1", 1)];
    let decided = ledger.commit(&one).await.expect("decided");
    books.ledger.meddle("ALTER TABLE orders ADD COLUMN note text").await.expect("migrated");
    let error = ledger.commit(&one).await.expect_err("an old statement");
    assert!(error.to_string().contains("cached plan"), "{error}");
    assert!(!error.is_permanent(), "{error}");
    assert_eq!(ledger.commit(&one).await.expect("prepared again"), decided);
}

#[tokio::test]
async fn a_ledger_that_was_killed_is_used_again_after_its_return_with_all_it_decided() {
    let mut postgres = Private::<PostgresRecipe>::start().await;
    let url = postgres.backend().url().parse().expect("a URL");
    let config = config::Ledger { url, connections: 2 };
    let ledger = Ledger::connect(&config).expect("a URL");
    ledger.migrate().await.expect("migrated");
    ledger.put_item(&sale("shoe", 2, None), None).await.expect("put");
    let batch = [reservation("shoe", "ann", "1", 2), reservation("shoe", "bob", "1", 1)];
    let decided = ledger.commit(&batch).await.expect("decided");
    assert_eq!(decided[0], confirmed(&batch[0]));

    postgres.kill().await;
    let error = ledger.commit(&batch).await.expect_err("it is away");
    assert!(error.to_string().contains(&config.url.address()), "{error}");

    postgres.restart().await;
    let again = eventually("the ledger is used again", Duration::from_secs(5), || async {
        ledger.commit(&batch).await.ok()
    });
    assert_eq!(again.await, decided);
}
