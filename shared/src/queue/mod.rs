//! The window on RabbitMQ: topology, publishing with confirms, consuming.
//!
//! Publishing and consuming use separate connections, because an alarm of the broker also blocks
//! the acks of a publishing one. Connections are supervised here: the library's own recovery hangs
//! and stays off.

mod acks;
mod connection;
mod declare;
mod deliveries;
mod depth;
mod error;
mod ghosts;
mod headers;
mod names;
mod publisher;
mod publishing;
mod subscription;
mod topology;
mod window;

pub use declare::declare;
pub use deliveries::{Deliveries, Delivery, finish};
pub use depth::ready_messages;
pub use error::QueueError;
pub use names::{Queue, Route};
pub use publisher::{Outgoing, PublishOutcome, Publisher};
