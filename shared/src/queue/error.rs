//! What can go wrong between us and RabbitMQ.

use lapin::ErrorKind;

/// The reply code of something that exists with other arguments.
const PRECONDITION_FAILED: u16 = 406;

/// A broker that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("rabbitmq.url cannot be used: {0}")]
    InvalidUrl(String),
    #[error("cannot reach RabbitMQ at {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("cannot declare {what} at RabbitMQ {address}: {source}")]
    Declare { what: String, address: String, source: Box<lapin::Error> },
    #[error("cannot consume from {queue} at RabbitMQ {address}: {source}")]
    Subscribe { queue: String, address: String, source: Box<lapin::Error> },
}

impl QueueError {
    /// What exists at the broker with other properties than this release declares, and what the
    /// broker says of the difference. Trying again cannot help.
    pub fn refusal(&self) -> Option<(&str, String)> {
        let Self::Declare { what, source, .. } = self else { return None };
        match source.kind() {
            ErrorKind::ProtocolError(error) if error.get_id() == PRECONDITION_FAILED => {
                Some((what, error.get_message().to_string()))
            }
            _ => None,
        }
    }
}
