//! The local stack: private Redis, RabbitMQ and PostgreSQL, started from the machine's own programs.
//!
//! For the demo and the tests. Everything lives under one directory that the caller names, listens
//! on free loopback ports only, and is stopped by process id *and* start time, so that nothing is
//! ever touched that this module did not start. The code blocks; async callers wrap it in
//! `spawn_blocking`.
//!
//! In the order things happen: `programs` finds what to run, `home` makes sure that one owner
//! at a time uses a directory, `ports` and `credentials` choose what a backend needs,
//! `process` spawns it with a `guardian` that outlives a killed owner, `backend` waits until
//! it answers, `termination` ends it. One file per backend says what is particular to it.
//!
//! What is absent: no retries of a failed start, no use of system services, of `/etc`, of port
//! 4369 (each RabbitMQ has its own epmd), and no unsafe code.

mod amqp;
mod backend;
mod companion;
mod credentials;
mod error;
mod guardian;
mod home;
mod ports;
mod postgres;
mod postgres_account;
mod process;
mod process_table;
mod programs;
mod rabbitmq;
mod rabbitmq_applications;
mod redis;
mod redis_cluster;
mod redis_cluster_moving;
mod redis_cluster_seen;
mod redis_member;
mod stack;
mod termination;
mod world;

pub use backend::{Backend, Recipe};
pub use companion::Companion;
pub use error::StackError;
pub use home::Home;
pub use postgres::{Postgres, PostgresRecipe};
pub use process::Process;
pub use programs::{command as clean_command, find as find_program};
pub use rabbitmq::{RabbitMq, RabbitMqRecipe};
pub use redis::{Redis, RedisRecipe};
pub use redis_cluster::RedisCluster;
pub use redis_member::{Member, MemberRecipe};
pub use stack::{Down, Endpoints, Stack};
pub use world::World;
