//! A database of its own for a test, which may do with it as it likes.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use super::{Ledger, LedgerError};
use crate::config;

impl Ledger {
    /// Creates an empty, migrated database beside the configured one, and returns settings that
    /// point at it.
    pub async fn scratch(config: &config::Ledger) -> Result<config::Ledger, LedgerError> {
        let name = format!("scratch_{}", Uuid::new_v4().simple());
        let failed = |source| LedgerError::of(&config.url.address(), "create a database", source);
        let mut connection = PgConnection::connect(config.url.expose()).await.map_err(failed)?;
        // The name is made of hexadecimal digits.
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(create).execute(&mut connection).await.map_err(failed)?;
        connection.close().await.map_err(failed)?;
        let scratch =
            config::Ledger { url: config.url.with_path(&name), connections: config.connections };
        let ledger = Self::connect(&scratch)?;
        ledger.migrate().await?;
        ledger.close().await;
        Ok(scratch)
    }

    /// Runs statements of a trial's, such as ones that break the schema.
    pub async fn meddle(&self, statements: &str) -> Result<(), LedgerError> {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(self.failed("run a trial's statements"))
    }
}
