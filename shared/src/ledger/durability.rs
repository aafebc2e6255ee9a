//! Whether what the ledger commits survives the loss of its machine.

use super::{Ledger, LedgerError};

impl Ledger {
    /// The value of `synchronous_commit` for this user in this database, for example `on`.
    pub async fn synchronous_commit(&self) -> Result<String, LedgerError> {
        sqlx::query_scalar("SHOW synchronous_commit")
            .fetch_one(&self.pool)
            .await
            .map_err(self.failed("read synchronous_commit"))
    }
}
