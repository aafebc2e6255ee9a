//! Shows what is going on during long work: bars on a terminal, plain lines elsewhere, always on
//! standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What is going on right now.
pub(crate) struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { bar: ProgressBar::hidden(), is_terminal }
    }

    /// Begins a step of unknown length.
    pub(crate) fn step(&mut self, what: &str) {
        self.begin(what, None);
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// Begins a step of `count` parts.
    pub(crate) fn count(&mut self, what: &str, count: u64) -> ProgressBar {
        self.begin(what, Some(count));
        self.bar.clone()
    }

    /// Ends the last step.
    pub(crate) fn done(&mut self) {
        self.bar.finish();
        self.bar = ProgressBar::hidden();
    }

    fn begin(&mut self, what: &str, count: Option<u64>) {
        self.done();
        if !self.is_terminal {
            eprintln!("{what}");
            return;
        }
        let (bar, template) = match count {
            None => (ProgressBar::new_spinner(), "{spinner} {msg:<28} {elapsed}"),
            Some(count) => {
                (ProgressBar::new(count), "  {msg:<28} {bar:32} {human_pos}/{human_len} {elapsed}")
            }
        };
        self.bar = bar;
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message(what.to_owned());
    }
}

/// A step that is given up leaves the terminal as it was.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
