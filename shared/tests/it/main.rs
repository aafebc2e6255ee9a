//! What the rooms claim about their backends, shown on real ones.

mod devstack;
mod eventually;
mod ledger;
mod metrics;
mod queue;
mod schema;
mod scratch;
mod scripts;
mod stock;
