//! The binary, as its users run it.

mod bench;
mod buckets;
mod cluster;
mod command;
mod config;
mod demo;
mod dlq;
mod dlq_bytes;
mod explain;
mod items;
mod ledger_behind;
mod locks;
mod pauses;
mod reconcile;
mod refusals;
mod services;
mod stock_added;
mod warming;
