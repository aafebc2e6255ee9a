//! What operators do with dead letters, one file a verb. The command line calls these; the
//! reconciler itself only takes letters in and keeps them.
//!
//! | file | step |
//! |---|---|
//! | [`judge`] | a letter against ledger and Redis: what is it worth, what would a replay do? |
//! | [`plan`] | all that a replay would do to stock and orders, counted |
//! | [`replay`] | take, publish with a confirm, mark; again after a kill |
//! | [`discard`] | expire in the ledger, then give the stock back |
//! | [`edit`] | other bytes for a letter, never another purchase |
//! | [`identity`] | which letters a message is |
//! | [`keep`] | what the reconciler does by itself: retention, patience, discards cut short |
//! | [`law`] | whether what a run touches still keeps the law |

mod discard;
mod edit;
mod identity;
mod judge;
mod keep;
mod law;
mod plan;
mod replay;

use shared::ledger::LedgerError;
use shared::stock::StockError;

pub use discard::{DiscardOptions, DiscardReport, discard};
pub use edit::{EditError, edit};
pub use identity::{Identity, identities};
pub use judge::{Judge, Judged, contents};
pub(crate) use keep::keep_letters;
pub use plan::{ItemPlan, Plan, plan};
pub use replay::{ReplayOptions, ReplayReport, ReplayStep, Stopped, replay};

/// Letters that are worked on at once.
pub const LETTERS_PAGE: u32 = 512;

/// Why work on letters could not go on. What was begun is found again by the next run.
#[derive(Debug, thiserror::Error)]
pub enum LettersError {
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}
