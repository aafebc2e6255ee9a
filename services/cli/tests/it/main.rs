//! The binary, as its users run it.

mod command;
mod config;
mod demo;
mod dlq;
mod dlq_bytes;
mod explain;
mod items;
mod locks;
mod refusals;
mod services;
