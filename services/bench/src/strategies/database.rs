//! The database of the rivals: two tables in a schema of their own, on the ledger's server.
//!
//! Pool and time limits are like those of the ledger's own connections, and statements are prepared
//! once a connection. Connections are not pinged before each use, which the ledger, with its few large
//! transactions, can afford.

use shared::config;
use shared::config::limits::{LEDGER_ACQUIRE_DEADLINE, LOCK_TIMEOUT, STATEMENT_TIMEOUT};
use shared::domain::Books;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::purchase::{Outcome, Purchase, Trouble};

/// Connections of every rival: what each process of the pipeline has by default. On two cores more of
/// them only wait longer for the row of a hot item.
pub const CONNECTIONS: u32 = 4;

/// SQLSTATE of a duplicate key.
const UNIQUE_VIOLATION: &str = "23505";

#[derive(Clone)]
pub struct Database {
    pool: PgPool,
}

/// What an item's row says, and whether the request has its order already.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Reading {
    pub(super) available: i64,
    pub(super) version: i64,
    pub(super) is_known: bool,
}

/// An item after a sale.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Row {
    pub item_id: String,
    pub total: i64,
    pub available: i64,
    /// Units, counted order by order.
    pub sold: i64,
    pub orders: i64,
}

impl Database {
    /// Connects; `connections` is how many there are.
    pub async fn open(ledger: &config::Ledger, connections: u32) -> Result<Self, sqlx::Error> {
        let options: PgConnectOptions = ledger.url.expose().parse()?;
        let milliseconds = |limit: std::time::Duration| limit.as_millis().to_string();
        let options = options.application_name("rival").options([
            ("search_path", "rivals".to_owned()),
            ("statement_timeout", milliseconds(STATEMENT_TIMEOUT)),
            ("lock_timeout", milliseconds(LOCK_TIMEOUT)),
        ]);
        let pool = PgPoolOptions::new()
            .min_connections(connections)
            .max_connections(connections)
            .acquire_timeout(LEDGER_ACQUIRE_DEADLINE)
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
        Ok(Self { pool })
    }

    /// Empty tables, whatever was there.
    pub async fn create_tables(&self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("DROP SCHEMA IF EXISTS rivals CASCADE").execute(&self.pool).await?;
        sqlx::raw_sql(include_str!("sql/create_tables.sql")).execute(&self.pool).await.map(drop)
    }

    /// Puts items on sale.
    pub async fn put(&self, items: &[String], units: i64) -> Result<(), sqlx::Error> {
        sqlx::query(include_str!("sql/put_items.sql"))
            .bind(items)
            .bind(vec![units; items.len()])
            .execute(&self.pool)
            .await
            .map(drop)
    }

    /// What the tables say in the end.
    pub async fn rows(&self) -> Result<Vec<Row>, sqlx::Error> {
        sqlx::query_as(include_str!("sql/read_books.sql")).fetch_all(&self.pool).await
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The conditional update and the order, in one transaction.
    pub(super) async fn sell_if_available(&self, purchase: &Purchase) -> Result<Outcome, Trouble> {
        let sold: Result<(bool, bool), _> =
            sqlx::query_as(include_str!("sql/sell_if_available.sql"))
                .bind(purchase.request_id)
                .bind(&purchase.item)
                .bind(&purchase.buyer)
                .bind(purchase.quantity)
                .fetch_one(&self.pool)
                .await;
        match sold {
            Ok((true, _)) => Ok(Outcome::Confirmed),
            Ok((_, true)) => Ok(Outcome::Repeated),
            Ok(_) => Ok(Outcome::SoldOut),
            Err(error) if is_duplicate(&error) => Ok(Outcome::Repeated),
            Err(error) => Err(error.into()),
        }
    }
}

impl Row {
    /// As the law wants to see it. `redis` is what a counter there says; a rival without one has
    /// nothing that could differ.
    pub fn books(&self, redis: Option<u64>) -> Books {
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        Books {
            total: unsigned(self.total),
            confirmed_units: unsigned(self.sold),
            ledger_available: unsigned(self.available),
            redis_available: Some(redis.unwrap_or(unsigned(self.available))),
            held: 0,
            most_by_one_buyer: 0,
            limit_per_buyer: None,
        }
    }
}

/// The order is there: somebody asked twice under one request id.
pub(super) fn is_duplicate(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).as_deref() == Some(UNIQUE_VIOLATION)
}
