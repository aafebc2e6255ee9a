//! Why a process does not start, and what to do about it.

use crate::config::Config;
use crate::domain::Misfit;
use crate::queue::QueueError;

/// What only somebody's hand can mend. Nothing was changed. Addresses are without passwords.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(
        "the ledger {ledger} belongs to namespace {theirs}, and this process is set to {ours}. To \
         join {theirs}, set namespace (LASTUNIT_NAMESPACE) to it; else give {ours} a database of \
         its own (ledger.url)"
    )]
    OtherNamespace { ledger: String, ours: String, theirs: String },
    #[error(
        "namespace {namespace} in Redis {redis} belongs to another ledger: it is store {found}, \
         and the ledger {ledger} has never had a store. Set ledger.url to that other ledger, or \
         another namespace; if it is gone for good, delete the keys {namespace}:* there"
    )]
    StrangeStore { namespace: String, redis: String, ledger: String, found: String },
    #[error(
        "Redis {redis} is store {found} of namespace {namespace}, and the ledger {ledger} names \
         store {named}: this Redis belongs to another ledger, or is an old copy of the one that \
         sells. Set redis.url, or ledger.url, to those that belong together; if this Redis shall \
         take over, stop every service, delete the keys {namespace}:* in it, and start again"
    )]
    OtherStore { namespace: String, redis: String, ledger: String, found: String, named: String },
    #[error(
        "Redis {redis} holds nothing of namespace {namespace}, and somebody sees store {named} of \
         the ledger {ledger} right now: that is another Redis. Set redis.url to it; if this Redis \
         shall take over, stop every service that uses the other one first"
    )]
    SeenElsewhere { namespace: String, redis: String, ledger: String, named: String },
    #[error(
        "Redis {redis} has version {version}; LastUnit needs 7.0 or newer, whose scripts know \
         what they may do when memory is full"
    )]
    OldRedis { redis: String, version: String },
    #[error(
        "Redis {redis} would forget stock when its memory is full: maxmemory-policy is {policy}. \
         Set it to noeviction (CONFIG SET maxmemory-policy noeviction, and in its configuration)"
    )]
    Evicts { redis: String, policy: String },
    #[error(
        "Redis {redis} is a node of a Redis Cluster, and keeps a part of the items only. Set \
         redis.mode (LASTUNIT_REDIS_MODE) to cluster, or redis.url to a Redis that stands alone"
    )]
    IsCluster { redis: String },
    #[error(
        "Redis {node} (of redis.url {redis}) is no node of a Redis Cluster: cluster-enabled is no. \
         Set redis.mode (LASTUNIT_REDIS_MODE) to single, or redis.url to nodes of a cluster"
    )]
    IsNoCluster { redis: String, node: String },
    #[error(
        "the ledger {ledger} would lose orders when its machine dies: synchronous_commit is off. \
         Set it to on (ALTER DATABASE … SET synchronous_commit = on; it may also be set for the \
         user, or for the whole server)"
    )]
    NotDurable { ledger: String },
    #[error(
        "{what} is at RabbitMQ {rabbitmq} with other properties than this release declares: \
         {difference}. Let consumers empty it, delete it there, and start again; or set another \
         namespace (LASTUNIT_NAMESPACE)"
    )]
    OtherProperties { what: String, rabbitmq: String, difference: String },
}

impl Refused {
    pub(super) fn misfit(config: &Config, misfit: Misfit) -> Self {
        let namespace = config.namespace.to_string();
        let (redis, ledger) = (config.redis.url.to_string(), config.ledger.url.to_string());
        match misfit {
            Misfit::OtherNamespace { theirs } => {
                Self::OtherNamespace { ledger, ours: namespace, theirs: theirs.to_string() }
            }
            Misfit::StrangeStore { found } => {
                Self::StrangeStore { namespace, redis, ledger, found: found.to_string() }
            }
            Misfit::OtherStore { found, named } => {
                let (found, named) = (found.to_string(), named.to_string());
                Self::OtherStore { namespace, redis, ledger, found, named }
            }
            Misfit::SeenElsewhere { named } => {
                Self::SeenElsewhere { namespace, redis, ledger, named: named.to_string() }
            }
        }
    }

    /// `Err` gives the error back when it is one that may pass.
    pub(super) fn by_the_broker(config: &Config, error: QueueError) -> Result<Self, QueueError> {
        match error.refusal() {
            Some((what, difference)) => Ok(Self::OtherProperties {
                what: what.to_owned(),
                rabbitmq: config.rabbitmq.url.to_string(),
                difference,
            }),
            None => Err(error),
        }
    }
}
