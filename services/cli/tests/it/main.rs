//! The binary, as its users run it.

mod command;
mod config;
mod demo;
mod items;
mod refusals;
mod services;
