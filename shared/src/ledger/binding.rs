//! Which environment this ledger is, and which Redis may sell for it.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::rows::unix_millis;
use super::{Ledger, LedgerError};
use crate::domain::{EnvironmentId, StoreBinding, StoreId};

/// What belongs to this ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub environment: EnvironmentId,
    /// `None` until something is warmed up for the first time.
    pub store: Option<StoreBinding>,
}

#[derive(FromRow)]
struct Row {
    environment_id: Uuid,
    namespace: Option<String>,
    store_id: Option<Uuid>,
    store_seen_at: Option<DateTime<Utc>>,
    asked_at: DateTime<Utc>,
}

impl Ledger {
    /// Reads what belongs to this ledger. How long the store has been unseen is by the clock of the
    /// database, so that no other clock matters.
    pub async fn binding(&self) -> Result<Binding, LedgerError> {
        let row: Option<Row> = sqlx::query_as(
            "SELECT environment_id, namespace, store_id, store_seen_at,
                    clock_timestamp() AS asked_at
             FROM environment",
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(self.failed("read which Redis belongs to it"))?;
        let row = row.ok_or_else(|| LedgerError::NotMigrated { address: self.address.to_string() });
        Binding::try_from(row?)
    }
}

impl TryFrom<Row> for Binding {
    type Error = LedgerError;

    fn try_from(row: Row) -> Result<Self, LedgerError> {
        let store = match (row.namespace, row.store_id, row.store_seen_at) {
            (Some(namespace), Some(store), Some(seen_at)) => Some(StoreBinding {
                namespace: namespace.parse().map_err(LedgerError::corrupt)?,
                store: StoreId::from_uuid(store),
                seen_at: unix_millis(seen_at),
                unseen_for: (row.asked_at - seen_at).to_std().unwrap_or_default(),
            }),
            _ => None,
        };
        Ok(Self { environment: EnvironmentId::from_uuid(row.environment_id), store })
    }
}
