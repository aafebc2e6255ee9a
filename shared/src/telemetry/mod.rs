//! Logs, which go to standard error, so that results on standard output stay clean; and numbers and
//! readiness, which whoever asks for `/metrics` and `/readyz` gets to see.

mod exposition;
mod metric;
pub mod metrics;
pub(crate) mod readiness;

pub use exposition::{CannotExpose, expose, metrics_page};
pub use metric::{Kind, Metric, Row};

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{Log, LogFormat};

/// A filter that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("cannot start logging: log.filter {filter:?} is not a filter: {source}")]
pub struct InvalidFilter {
    filter: String,
    source: tracing_subscriber::filter::ParseError,
}

/// The AMQP library reports every lost connection as an error, and returned messages with their
/// bodies. Our own supervision says what was lost and what becomes of it. A filter can ask for more.
const SILENT: &str = "lapin=off";

/// Starts logging for this process; a second call changes nothing.
pub fn init(log: &Log) -> Result<(), InvalidFilter> {
    let filter = EnvFilter::try_new(format!("{SILENT},{}", log.filter))
        .map_err(|source| InvalidFilter { filter: log.filter.clone(), source })?;
    let colours = std::io::stderr().is_terminal();
    let lines = fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    // The only error is that logging has been started already, for example by another test.
    let _ = match log.format {
        LogFormat::Text => lines.with_target(true).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}
