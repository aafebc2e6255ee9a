//! How to measure.

use std::path::PathBuf;

/// What the command line says, and where things are.
#[derive(Clone)]
pub struct Plan {
    pub rounds: u32,
    /// A smoke run: everything once or twice, and small.
    pub quick: bool,
    /// Names of the sections to measure; none are all.
    pub only: Vec<String>,
    /// Data and logs of the private stack.
    pub dir: PathBuf,
    /// The `lastunit` program: services run as processes of their own.
    pub program: PathBuf,
    /// Tells people, on standard error, what is going on.
    pub tell: fn(&str),
}

impl Plan {
    /// A size, or the one of a smoke run.
    pub fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Whether a section is to be measured.
    pub fn wants(&self, section: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == section)
    }

    pub fn tell(&self, what: impl AsRef<str>) {
        (self.tell)(what.as_ref());
    }
}
