//! The binary, as its users run it.

mod command;
mod config;
mod demo;
mod items;
mod locks;
mod refusals;
mod services;
