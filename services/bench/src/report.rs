//! A run: on which machine, by which command line, and what came out.

use serde::Serialize;

use crate::goal::Verdict;
use crate::section::Section;

/// Everything about one run; table, JSON and HTML are made of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `limits`, `strategies` or `scale`.
    pub subject: String,
    /// When it began, as RFC 3339.
    pub date: String,
    pub command: String,
    pub rounds: u32,
    /// A smoke run, too small to say anything about speed.
    pub quick: bool,
    pub took_s: f64,
    pub machine: Machine,
    pub sections: Vec<Section>,
}

/// Where it was measured; what could not be found out is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_mib: u64,
    pub kernel: String,
    pub redis: String,
    pub rabbitmq: String,
    pub postgresql: String,
    pub lastunit: String,
    /// Of the working copy that it ran in.
    pub commit: String,
    /// How the program was built: figures of a build without optimisation mean nothing.
    pub profile: String,
}

impl Report {
    /// Whether every goal that there is was met.
    pub fn meets_all(&self) -> bool {
        self.sections.iter().flat_map(Section::verdicts).all(|verdict| verdict == Verdict::Met)
    }
}
