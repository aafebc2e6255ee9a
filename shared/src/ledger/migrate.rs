//! Brings the schema up to date, and names the environment once.

use sqlx::migrate::Migrator;

use super::{Ledger, LedgerError};
use crate::domain::EnvironmentId;

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations/postgres");

impl Ledger {
    /// Applies what is missing. Several may run at once: the library takes a lock. Returns the
    /// environment's id, minted by the first run.
    pub async fn migrate(&self) -> Result<EnvironmentId, LedgerError> {
        // A long migration must not meet the time limits of selling.
        MIGRATIONS.run(&self.pool).await.map_err(|source| self.not_migrated(source))?;
        sqlx::query(
            "INSERT INTO environment (environment_id) VALUES (gen_random_uuid())
             ON CONFLICT DO NOTHING",
        )
        .execute(&self.pool)
        .await
        .map_err(self.failed("name the environment"))?;
        self.environment().await
    }

    fn not_migrated(&self, source: sqlx::migrate::MigrateError) -> LedgerError {
        let address = self.address.to_string();
        match source {
            sqlx::migrate::MigrateError::Execute(source) => {
                LedgerError::of(&address, "migrate", source)
            }
            source => LedgerError::Migrate { address, source },
        }
    }
}
