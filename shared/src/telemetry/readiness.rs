//! What keeps this process from its work, for whoever asks at `/readyz` on `metrics.listen`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Something that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// Whether ledger and Redis were found to belong together.
    Admission,
    /// Whether the broker takes dead letters. While it does not, they are kept, and whatever else
    /// travelled with them waits.
    DeadLetters,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::DeadLetters => "dead_letters",
        }
    }
}

static TROUBLES: Mutex<BTreeMap<Check, String>> = Mutex::new(BTreeMap::new());

/// Says what is wrong, or that nothing is any more.
pub(crate) fn report(check: Check, trouble: Option<String>) {
    let mut troubles = TROUBLES.lock().unwrap_or_else(PoisonError::into_inner);
    match trouble {
        Some(trouble) => troubles.insert(check, trouble),
        None => troubles.remove(&check),
    };
}

/// What is wrong right now, by the names of the checks.
pub(super) fn troubles() -> BTreeMap<&'static str, String> {
    let troubles = TROUBLES.lock().unwrap_or_else(PoisonError::into_inner);
    troubles.iter().map(|(check, trouble)| (check.name(), trouble.clone())).collect()
}
