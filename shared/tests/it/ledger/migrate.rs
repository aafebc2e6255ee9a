//! Migrating is safe to repeat, and safe to start everywhere at once.

use futures_util::future::join_all;
use shared::devstack::PostgresRecipe;
use shared::ledger::Ledger;

use super::{Books, Private, config, sale};

#[tokio::test]
async fn migrating_again_changes_nothing_and_the_environment_keeps_its_name() {
    let books = Books::selling(9, None).await;
    let environment = books.ledger.environment().await.expect("migrated");
    for _ in 0..2 {
        assert_eq!(books.ledger.migrate().await.expect("migrated"), environment);
    }
    assert_eq!(books.item("shoe").await.sale, sale("shoe", 9, None));
}

#[tokio::test]
async fn two_ledgers_are_two_environments() {
    let (one, other) = (Books::new().await, Books::new().await);
    let environments = (
        one.ledger.environment().await.expect("one"),
        other.ledger.environment().await.expect("two"),
    );
    assert_ne!(environments.0, environments.1);
}

#[tokio::test]
async fn three_that_migrate_at_once_agree_on_one_environment() {
    let postgres = Private::<PostgresRecipe>::start().await;
    let url = postgres.backend().url().parse().expect("a URL");
    let config = config::Ledger { url, connections: 2 };
    let ledgers: Vec<_> = (0..3).map(|_| Ledger::connect(&config).expect("a URL")).collect();
    let migrated = join_all(ledgers.iter().map(Ledger::migrate)).await;
    let environments: Vec<_> =
        migrated.into_iter().map(|environment| environment.expect("migrated")).collect();
    assert!(environments.windows(2).all(|two| two[0] == two[1]), "{environments:?}");
}
