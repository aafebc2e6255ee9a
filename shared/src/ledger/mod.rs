//! The window on the database, which has the last word. One file per verb.
//!
//! No future of this room may be dropped half-way: the library would hand the connection, with its
//! unfinished transaction, to the next user. Time limits are the server's. Callers whose own future
//! may be dropped, such as HTTP handlers, call from a task of their own.

mod add_stock;
mod begin_warm;
mod bind_store;
mod binding;
mod catalog;
mod change_sale;
mod claim_letters;
mod commit;
mod compare;
mod count_letter_run;
mod count_orders;
#[cfg(feature = "devstack")]
mod describe_schema;
mod discard_letters;
mod durability;
mod edit_letter;
mod environment;
mod error;
mod expire;
mod fence;
mod find_order;
mod find_orders;
mod findings;
mod foresee;
mod import_letters;
mod items;
mod kept_items;
mod letter_filter;
mod letter_stats;
mod letters;
mod list_letters;
mod list_orders;
mod migrate;
mod park;
mod put_item;
mod rows;
#[cfg(feature = "devstack")]
mod scratch;
mod see_store;
mod sessions;
mod sold_books;

pub use add_stock::Added;
pub use begin_warm::{WarmOrder, WarmReading};
pub use bind_store::BindOutcome;
pub use binding::Binding;
pub use catalog::CatalogPage;
pub use change_sale::Changed;
pub use claim_letters::LetterRun;
pub use count_letter_run::RunCounts;
pub use count_orders::OrderCounts;
pub use edit_letter::{EditOutcome, EditedLetter};
pub use error::LedgerError;
pub use expire::Expiry;
pub use findings::{Finding, FindingKind};
pub use foresee::{Foreseen, Foresight};
pub use items::{Item, Pause};
pub use kept_items::KeptItem;
pub use letter_filter::LetterFilter;
pub use letter_stats::{ErrorCount, ReasonCount};
pub use letters::{KeptLetter, LetterAct, Subject};
pub use list_letters::LetterSort;
pub use list_orders::DecidedOrder;
pub use park::Letter;
pub use put_item::PutOutcome;
pub use see_store::SeeOutcome;

use std::sync::Arc;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use self::sessions::Sessions;
use crate::config;
use crate::config::limits::{LEDGER_ACQUIRE_DEADLINE, LOCK_TIMEOUT, STATEMENT_TIMEOUT};

/// A handle on the ledger; cheap to clone. It connects when it is first used.
#[derive(Clone)]
pub struct Ledger {
    pool: PgPool,
    sessions: Sessions,
    address: Arc<str>,
}

impl Ledger {
    /// Prepares connections, and returns at once.
    pub fn connect(config: &config::Ledger) -> Result<Self, LedgerError> {
        let options: PgConnectOptions =
            config.url.expose().parse().map_err(LedgerError::InvalidUrl)?;
        let milliseconds = |limit: std::time::Duration| limit.as_millis().to_string();
        let options = options.application_name("lastunit").options([
            ("statement_timeout", milliseconds(STATEMENT_TIMEOUT)),
            ("lock_timeout", milliseconds(LOCK_TIMEOUT)),
            ("idle_in_transaction_session_timeout", milliseconds(2 * STATEMENT_TIMEOUT)),
        ]);
        let sessions = Sessions::default();
        let asked = sessions.clone();
        let pool = PgPoolOptions::new()
            .max_connections(u32::from(config.connections))
            .acquire_timeout(LEDGER_ACQUIRE_DEADLINE)
            .test_before_acquire(false)
            .before_acquire(move |session, meta| {
                let sessions = asked.clone();
                Box::pin(async move { Ok(sessions.admit(session, meta).await) })
            })
            .connect_lazy_with(options);
        Ok(Self { pool, sessions, address: config.url.address().into() })
    }

    /// Closes all connections, once their work is done.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// What was being done, to tell people when it fails.
    fn failed(&self, doing: &'static str) -> impl Fn(sqlx::Error) -> LedgerError + use<> {
        let (address, sessions) = (Arc::clone(&self.address), self.sessions.clone());
        move |source| {
            sessions.hear(&source);
            LedgerError::of(&address, doing, source)
        }
    }
}
