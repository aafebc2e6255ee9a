//! What can go wrong between us and the database.

use std::error::Error;

/// A call to the ledger that failed. Its effect, if it had one, is found by asking again.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("ledger.url cannot be used: {0}")]
    InvalidUrl(sqlx::Error),
    #[error("cannot reach the ledger at {address} to {doing}: {source}")]
    Unreachable { address: String, doing: &'static str, source: sqlx::Error },
    #[error("the ledger at {address} has no tables yet: run `lastunit migrate`")]
    NotMigrated { address: String },
    #[error("the ledger at {address} has tables of an earlier release: run `lastunit migrate`")]
    Outdated { address: String },
    #[error("the ledger at {address} failed to {doing}: {source}")]
    Failed { address: String, doing: &'static str, source: sqlx::Error },
    #[error("cannot migrate the ledger at {address}: {source}")]
    Migrate { address: String, source: sqlx::migrate::MigrateError },
    #[error("the ledger holds a value that this release does not understand: {0}")]
    Corrupt(#[source] Box<dyn Error + Send + Sync>),
    /// Another writer got in between; nothing was written.
    #[error("the ledger changed while {doing}; nothing was written")]
    Interfered { doing: &'static str },
}

/// SQLSTATE of a duplicate key.
const UNIQUE_VIOLATION: &str = "23505";

/// SQLSTATE of a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";

/// SQLSTATE of a column that does not exist.
const UNDEFINED_COLUMN: &str = "42703";

impl LedgerError {
    /// True when the database could not be asked at all.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// True when the data itself is wrong, so that trying again cannot help: SQLSTATE class 22 (data)
    /// or 23 (integrity), but for a duplicate key and the check of `available`, which mean *read
    /// again*. Everything else, unknown codes included, may pass.
    pub fn is_permanent(&self) -> bool {
        let Self::Failed { source: sqlx::Error::Database(error), .. } = self else { return false };
        let code = error.code().unwrap_or_default();
        let read_again = code == UNIQUE_VIOLATION
            || error.constraint().is_some_and(|name| name.starts_with("items_available"));
        (code.starts_with("22") || code.starts_with("23")) && !read_again
    }

    pub(super) fn of(address: &str, doing: &'static str, source: sqlx::Error) -> Self {
        let address = address.to_owned();
        match &source {
            sqlx::Error::Database(error) if error.code().as_deref() == Some(UNDEFINED_TABLE) => {
                Self::NotMigrated { address }
            }
            sqlx::Error::Database(error) if error.code().as_deref() == Some(UNDEFINED_COLUMN) => {
                Self::Outdated { address }
            }
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Tls(_) => {
                Self::Unreachable { address, doing, source }
            }
            _ => Self::Failed { address, doing, source },
        }
    }

    pub(super) fn corrupt(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Corrupt(source.into())
    }
}
