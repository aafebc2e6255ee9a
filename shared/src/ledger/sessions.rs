//! Which sessions are used again.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnectionMetadata;
use sqlx::{Connection, PgConnection};

use crate::config::limits::LEDGER_TRUSTED;

/// SQLSTATE of a write in a session that may only read.
const READ_ONLY: &str = "25006";

/// SQLSTATE of a prepared statement whose table has other columns by now, among others.
const NOT_SUPPORTED: &str = "0A000";

/// Sessions keep what they met when they began. One that began while the ledger was read-only, for a
/// failover or for want of disk, stays so when the ledger is not any more; one that prepared its
/// statements before a migration may refuse them for ever after it. The first that says so ends all
/// that began before.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    begun_after: Arc<RwLock<Option<Instant>>>,
}

impl Sessions {
    /// Whether an idle session may be used now.
    pub(super) async fn admit(
        &self,
        session: &mut PgConnection,
        meta: PoolConnectionMetadata,
    ) -> bool {
        if self.are_over(meta.age) {
            return false;
        }
        // One that was used a moment ago is not asked again whether it is alive.
        meta.idle_for < LEDGER_TRUSTED || session.ping().await.is_ok()
    }

    /// Hears of every error of the ledger.
    pub(super) fn hear(&self, error: &sqlx::Error) {
        let code = error.as_database_error().and_then(|error| error.code());
        if code.is_some_and(|code| [READ_ONLY, NOT_SUPPORTED].contains(&code.as_ref())) {
            let mut begun_after = self.begun_after.write().unwrap_or_else(PoisonError::into_inner);
            *begun_after = Some(Instant::now());
        }
    }

    fn are_over(&self, age: Duration) -> bool {
        let begun_after = self.begun_after.read().unwrap_or_else(PoisonError::into_inner);
        begun_after.is_some_and(|since| since.elapsed() <= age)
    }
}
