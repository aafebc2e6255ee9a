//! What can go wrong between us and RabbitMQ.

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
