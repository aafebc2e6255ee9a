//! A message that nobody could handle, with why, as it goes to the queue `dead`.

/// The message and its story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Stable, for programs: `undecodable`, `foreign_environment`, `mismatch`, `unknown_item`, `refused`.
    pub reason: &'static str,
    /// For people.
    pub error: String,
    /// The queue that it came from.
    pub source: String,
    /// Exactly as it came, or the one reservation that could not be decided.
    pub body: Vec<u8>,
}

impl DeadLetter {
    /// The headers under which it is published.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("reason", self.reason.to_owned()),
            ("error", self.error.clone()),
            ("source", self.source.clone()),
        ]
    }
}
