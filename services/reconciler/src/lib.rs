//! Keeps Redis in line with the ledger: [`warm`] builds an item's Redis state before its sale.

mod warm;

pub use warm::{WarmError, Warmed, warm};
