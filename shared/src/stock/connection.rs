//! What calls go through: one server, or the nodes of a cluster.

use redis::FromRedisValue;

use super::cluster::Cluster;
use super::error::StockError;
use super::node::Node;
use super::script::Call;
use crate::config::{self, RedisMode};

/// A Redis; clones share its connections.
#[derive(Clone)]
pub(super) enum Connection {
    Single(Box<Node>),
    Cluster(Cluster),
}

impl Connection {
    /// Begins to connect. Only a URL that cannot be used is an error.
    pub(super) fn open(config: &config::Redis) -> Result<Self, StockError> {
        Ok(match config.mode {
            RedisMode::Single => Self::Single(Box::new(Node::open(config.url.first())?)),
            RedisMode::Cluster => Self::Cluster(Cluster::open(&config.url)?),
        })
    }

    /// Runs a script once.
    pub(super) async fn run<T: FromRedisValue>(&self, call: Call<'_>) -> Result<T, StockError> {
        match self {
            Self::Single(node) => node.run(&call).await,
            Self::Cluster(cluster) => cluster.run(&call).await,
        }
    }

    /// Runs a script on a connection of its own, and then waits until `replicas` have what it wrote,
    /// or for as long as they are given; says how many have it.
    pub(super) async fn run_replicated<T: FromRedisValue>(
        &self,
        call: Call<'_>,
        replicas: u8,
    ) -> Result<(T, u8), StockError> {
        match self {
            Self::Single(node) => node.run_replicated(&call, replicas).await,
            Self::Cluster(cluster) => cluster.run_replicated(&call, replicas).await,
        }
    }

    /// Of these keys one for each server that keeps some.
    pub(super) async fn one_key_each(
        &self,
        mut keys: impl Iterator<Item = String>,
    ) -> Result<Vec<String>, StockError> {
        match self {
            Self::Single(_) => Ok(keys.next().into_iter().collect()),
            Self::Cluster(cluster) => cluster.one_key_each(keys).await,
        }
    }

    /// What each server tells about itself, by its address; `None` where it does not let us ask.
    pub(super) async fn info(
        &self,
        section: &'static str,
    ) -> Result<Vec<(String, Option<String>)>, StockError> {
        match self {
            Self::Single(node) => Ok(vec![(node.address().to_owned(), node.info(section).await?)]),
            Self::Cluster(cluster) => cluster.info(section).await,
        }
    }
}
