//! The one Redis that may sell for a ledger.

use std::time::Duration;

use futures_util::future::join_all;
use shared::domain::{Namespace, StoreId};
use shared::ledger::{BindOutcome, Ledger, LedgerError, SeeOutcome};

use super::Books;

/// The last second in which a store still counts as seen, and the first in which it does not.
const NEARLY: u32 = 19;
const LONG: u32 = 20;

fn namespace() -> Namespace {
    "shop-eu".parse().expect("a namespace")
}

impl Books {
    async fn bind(&self, store: StoreId, replaced: Option<StoreId>) -> BindOutcome {
        self.ledger.bind_store(&namespace(), store, replaced).await.expect("an answer")
    }

    async fn store(&self) -> Option<StoreId> {
        self.ledger.binding().await.expect("an answer").store.map(|bound| bound.store)
    }

    /// Nobody has seen the store for so long.
    async fn forget_for(&self, seconds: u32) {
        let statement = format!(
            "UPDATE environment SET store_seen_at = clock_timestamp() - interval '{seconds} s'"
        );
        self.ledger.meddle(&statement).await.expect("forgotten");
    }
}

#[tokio::test]
async fn a_new_ledger_names_no_store_until_it_is_bound() {
    let books = Books::new().await;
    let environment = books.ledger.environment().await.expect("an answer");
    let binding = books.ledger.binding().await.expect("an answer");
    assert_eq!((binding.environment, binding.store), (environment, None));
    let store = StoreId::mint();
    assert_eq!(books.ledger.see_store(store).await.expect("an answer"), SeeOutcome::NotBound);
    assert_eq!(books.bind(store, None).await, BindOutcome::Bound);
    let bound = books.ledger.binding().await.expect("an answer").store.expect("a store");
    assert_eq!((bound.namespace, bound.store), (namespace(), store));
    assert!(bound.unseen_for < Duration::from_secs(5), "{:?}", bound.unseen_for);
    books.ledger.migrate().await.expect("migrated again");
    assert_eq!(books.store().await, Some(store));
}

#[tokio::test]
async fn only_a_store_that_nobody_has_seen_for_long_is_replaced() {
    let books = Books::new().await;
    let (old, new) = (StoreId::mint(), StoreId::mint());
    assert_eq!(books.bind(old, None).await, BindOutcome::Bound);
    assert_eq!(books.bind(new, None).await, BindOutcome::Overtaken, "it has one");
    books.forget_for(NEARLY).await;
    assert_eq!(books.bind(new, Some(old)).await, BindOutcome::Overtaken, "too early");
    books.forget_for(LONG).await;
    assert_eq!(books.bind(new, None).await, BindOutcome::Overtaken, "it has one");
    assert_eq!(books.bind(new, Some(new)).await, BindOutcome::Overtaken, "not that one");
    let elsewhere = "elsewhere".parse().expect("a namespace");
    let foreign = books.ledger.bind_store(&elsewhere, new, Some(old)).await.expect("an answer");
    assert_eq!(foreign, BindOutcome::Overtaken, "a ledger keeps its namespace");
    assert_eq!(books.store().await, Some(old));
    assert_eq!(books.bind(new, Some(old)).await, BindOutcome::Bound);
    assert_eq!(books.store().await, Some(new));
}

#[tokio::test]
async fn a_store_that_is_seen_is_not_replaced() {
    let books = Books::new().await;
    let (old, new) = (StoreId::mint(), StoreId::mint());
    books.bind(old, None).await;
    books.forget_for(LONG).await;
    let unseen = books.ledger.binding().await.expect("an answer").store.expect("one").unseen_for;
    assert!(unseen >= Duration::from_secs(LONG.into()), "{unseen:?}");
    assert_eq!(books.ledger.see_store(old).await.expect("an answer"), SeeOutcome::Seen);
    assert_eq!(books.ledger.see_store(new).await.expect("an answer"), SeeOutcome::NotBound);
    assert_eq!(books.bind(new, Some(old)).await, BindOutcome::Overtaken);
    assert_eq!(books.store().await, Some(old));
}

#[tokio::test]
async fn of_many_that_bind_at_once_one_wins_first_and_after_a_loss() {
    let books = Books::new().await;
    let mut replaced = None;
    for _ in 0..2 {
        let candidates: Vec<_> = (0..4).map(|_| StoreId::mint()).collect();
        let outcomes = join_all(candidates.iter().map(|store| books.bind(*store, replaced))).await;
        let bound = |(outcome, _): &(&BindOutcome, _)| **outcome == BindOutcome::Bound;
        let winners: Vec<_> = outcomes.iter().zip(&candidates).filter(bound).collect();
        assert_eq!(winners.len(), 1, "{outcomes:?}");
        assert_eq!(books.store().await, Some(*winners[0].1));
        replaced = books.store().await;
        books.forget_for(LONG).await;
    }
}

#[tokio::test]
async fn it_says_whether_commits_wait_for_the_disk() {
    let books = Books::new().await;
    assert_eq!(books.ledger.synchronous_commit().await.expect("an answer"), "on");
    let name = books.config.url.expose().rsplit('/').next().expect("a database").to_owned();
    let off = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    books.ledger.meddle(&off).await.expect("obeyed");
    let later = Ledger::connect(&books.config).expect("a URL");
    assert_eq!(later.synchronous_commit().await.expect("an answer"), "off");
}

#[tokio::test]
async fn tables_of_an_earlier_release_are_told_with_what_to_do() {
    let books = Books::new().await;
    let back = "ALTER TABLE environment DROP COLUMN store_id";
    books.ledger.meddle(back).await.expect("dropped");
    let error = books.ledger.binding().await.expect_err("a column is missing");
    assert!(matches!(error, LedgerError::Outdated { .. }), "{error}");
    assert!(!error.is_permanent(), "it may pass");
    assert!(error.to_string().contains("run `lastunit migrate`"), "{error}");
}
