//! Brings the schema up to date, and names the environment once.

use sqlx::Connection;
use sqlx::migrate::{MigrateError, Migrator};

use super::{Ledger, LedgerError};
use crate::domain::EnvironmentId;

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations/postgres");

impl Ledger {
    /// Applies what is missing. Several may run at once: the library takes a lock. Returns the
    /// environment's id, minted by the first run.
    pub async fn migrate(&self) -> Result<EnvironmentId, LedgerError> {
        self.apply().await.map_err(|source| self.not_migrated(source))?;
        sqlx::query(
            "INSERT INTO environment (environment_id) VALUES (gen_random_uuid())
             ON CONFLICT DO NOTHING",
        )
        .execute(&self.pool)
        .await
        .map_err(self.failed("name the environment"))?;
        self.environment().await
    }

    /// A long migration, and whoever waits for one, must not meet the time limits of selling: so
    /// they are lifted on this connection, which goes back to nobody.
    async fn apply(&self) -> Result<(), MigrateError> {
        let mut connection = self.pool.acquire().await?.detach();
        sqlx::raw_sql("SET statement_timeout = 0; SET lock_timeout = 0")
            .execute(&mut connection)
            .await?;
        MIGRATIONS.run(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    fn not_migrated(&self, source: MigrateError) -> LedgerError {
        let address = self.address.to_string();
        match source {
            MigrateError::Execute(source) => LedgerError::of(&address, "migrate", source),
            source => LedgerError::Migrate { address, source },
        }
    }
}
