//! Describes the schema, for the snapshot that shows in review what a migration changes.

use super::{Ledger, LedgerError};

impl Ledger {
    /// Every table with its columns, constraints and indexes, from the catalogs of the database.
    pub async fn describe_schema(&self) -> Result<String, LedgerError> {
        let lines: Vec<String> = sqlx::query_scalar(include_str!("sql/describe_schema.sql"))
            .fetch_all(&self.pool)
            .await
            .map_err(self.failed("describe the schema"))?;
        Ok(lines.join("\n") + "\n")
    }
}
