//! Names the Redis that may sell for this ledger.

use uuid::Uuid;

use super::{Ledger, LedgerError};
use crate::config::limits::STORE_UNSEEN;
use crate::domain::{Namespace, StoreId};

/// What became of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindOutcome {
    /// The ledger names this store from now on. Redis has to be told.
    Bound,
    /// Somebody else bound a store, or has just seen the old one; nothing was written.
    Overtaken,
}

impl Ledger {
    /// Binds a ledger that was never bound, or one whose store, `replaced`, nobody has seen for
    /// long. Of several at once, one wins.
    pub async fn bind_store(
        &self,
        namespace: &Namespace,
        store: StoreId,
        replaced: Option<StoreId>,
    ) -> Result<BindOutcome, LedgerError> {
        let unseen_ms = i64::try_from(STORE_UNSEEN.as_millis()).unwrap_or(i64::MAX);
        let bound = sqlx::query(
            "UPDATE environment
             SET namespace = $1, store_id = $2, store_seen_at = clock_timestamp()
             WHERE (store_id IS NULL AND $3::uuid IS NULL)
                OR (store_id = $3 AND namespace = $1
                    AND store_seen_at <= clock_timestamp() - $4 * interval '1 millisecond')",
        )
        .bind(namespace.as_str())
        .bind(store.as_uuid())
        .bind(replaced.map(|replaced| replaced.as_uuid()) as Option<Uuid>)
        .bind(unseen_ms)
        .execute(&self.pool)
        .await
        .map_err(self.failed("bind a store"))?;
        Ok(if bound.rows_affected() == 1 { BindOutcome::Bound } else { BindOutcome::Overtaken })
    }
}
