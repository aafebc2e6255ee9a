//! Which environment this ledger is.

use uuid::Uuid;

use super::{Ledger, LedgerError};
use crate::domain::EnvironmentId;

impl Ledger {
    /// The environment's id; an unmigrated ledger has none.
    pub async fn environment(&self) -> Result<EnvironmentId, LedgerError> {
        let id: Option<Uuid> = sqlx::query_scalar("SELECT environment_id FROM environment")
            .fetch_optional(&self.pool)
            .await
            .map_err(self.failed("read the environment"))?;
        id.map(EnvironmentId::from_uuid)
            .ok_or_else(|| LedgerError::NotMigrated { address: self.address.to_string() })
    }
}
