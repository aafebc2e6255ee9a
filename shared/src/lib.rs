//! What every service of LastUnit shares, in the order the data flows.
//!
//! | room | what is in it |
//! |---|---|
//! | [`domain`] | values and decisions; no I/O, no clock, no serialisation |
//! | [`contract`] | the messages that cross a process boundary |
//! | [`stock`] | the only window on Redis |
//! | [`queue`] | the only window on RabbitMQ |
//! | [`ledger`] | the only window on the database |
//! | [`config`] | what can be set, and every bound with its reason |
//! | [`telemetry`] | logs and numbers |
//! | [`backends`] | the three windows of a service, opened together |
//! | [`gate`] | what every process passes before it works |
//! | [`batch`], [`retry`], [`shutdown`] | natural batching; waiting between attempts; stopping |
//! | [`crash`] | points at which trials let a process die |
//! | `devstack` | (feature) private backends for the demo and the tests |
//!
//! The windows never import each other: a use case in a service touches two.

pub mod backends;
pub mod batch;
pub mod config;
pub mod contract;
pub mod crash;
#[cfg(feature = "devstack")]
pub mod devstack;
pub mod domain;
pub mod gate;
pub mod ledger;
pub mod queue;
pub mod retry;
pub mod shutdown;
pub mod stock;
pub mod telemetry;
