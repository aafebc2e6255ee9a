//! What is asked of every rival, and what it may answer.

use uuid::Uuid;

/// One request: the same id is the same purchase.
#[derive(Debug, Clone)]
pub struct Purchase {
    pub request_id: Uuid,
    pub item: String,
    pub buyer: String,
    pub quantity: i64,
}

/// An answer. Rivals work synchronously: whoever is accepted has an order in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Confirmed,
    /// It was confirmed before, under this request id.
    Repeated,
    SoldOut,
}

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("there is no item {0}")]
    UnknownItem(String),
    #[error("the lock of {item} did not become free within {waited_ms} ms")]
    LockBusy { item: String, waited_ms: u128 },
    #[error("others were faster on {item} in each of {attempts} attempts")]
    Outrun { item: String, attempts: u32 },
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
    #[error("Redis failed: {0}")]
    Redis(#[from] redis::RedisError),
    #[error("Redis answered {0:?}, which no script of ours does")]
    Reply(String),
}

impl Trouble {
    /// A stable name, to count by.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownItem(_) => "unknown_item",
            Self::LockBusy { .. } => "lock_busy",
            Self::Outrun { .. } => "outrun",
            Self::Database(sqlx::Error::PoolTimedOut) => "no_connection",
            Self::Database(_) => "database",
            Self::Redis(_) | Self::Reply(_) => "redis",
        }
    }
}
