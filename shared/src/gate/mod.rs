//! The gate that every process passes before it works: do its settings, its ledger, its Redis and
//! its broker belong together, and can they be relied upon?
//!
//! What is only away is waited for. What only a hand can mend is refused, with what to do.

mod refused;

pub use refused::Refused;

use crate::config::limits::{STORE_SEEN_EVERY, STORE_UNSEEN};
use crate::config::{Config, Redis, RedisMode};
use crate::domain::{Admission, EnvironmentId, Onlooker, StoreBinding, StoreId};
use crate::ledger::{Binding, Ledger};
use crate::queue;
use crate::retry::Pauses;
use crate::shutdown::Shutdown;
use crate::stock::{Server, Stock};
use crate::telemetry::readiness::{self, Check};

/// The oldest Redis whose scripts know what they may do when it is full.
const LEAST_REDIS: u32 = 7;

/// Looks at the ledger and the Redis of a deployment until it is clear whether they fit.
pub struct Gate<'a> {
    config: &'a Config,
    ledger: &'a Ledger,
    stock: &'a Stock,
    onlooker: Onlooker,
}

/// What a look has found, unless that was a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Clear {
        environment: EnvironmentId,
        standing: Standing,
    },
    /// Something is away, or changing, for this reason. Looking again may help.
    Unclear(String),
}

/// How a deployment that fits stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This Redis is the one that may sell.
    Bound,
    /// There is none yet.
    Unbound,
    /// There is none any more: this was it.
    Lost(StoreBinding),
}

impl<'a> Gate<'a> {
    pub fn new(config: &'a Config, ledger: &'a Ledger, stock: &'a Stock) -> Self {
        let onlooker = Onlooker::new(&config.namespace, STORE_UNSEEN, STORE_SEEN_EVERY);
        Self { config, ledger, stock, onlooker }
    }

    /// Looks once. A misfit is refused by the second look that finds it.
    pub async fn look(&mut self) -> Result<Found, Refused> {
        // Both to their end, so that everything that is away is named.
        let (servers, durable) =
            tokio::join!(self.stock.servers(), self.ledger.synchronous_commit());
        let (servers, durable) = match (servers, durable) {
            (Ok(servers), Ok(durable)) => (servers, durable),
            (Err(redis), Err(ledger)) => return Ok(Found::Unclear(format!("{redis}; {ledger}"))),
            (Err(redis), _) => return Ok(Found::Unclear(redis.to_string())),
            (_, Err(ledger)) => return Ok(Found::Unclear(ledger.to_string())),
        };
        reliable(self.config, &servers, &durable)?;
        // Redis first: see `admit`.
        let store = match self.stock.store().await {
            Ok(store) => store,
            Err(redis) => return Ok(Found::Unclear(redis.to_string())),
        };
        let Binding { environment, store: named } = match self.ledger.binding().await {
            Ok(binding) => binding,
            Err(ledger) => return Ok(Found::Unclear(ledger.to_string())),
        };
        let standing = match (self.onlooker.look(named.as_ref(), store), named) {
            (Admission::Admitted, _) => Standing::Bound,
            (Admission::StoreLost, Some(lost)) => Standing::Lost(lost),
            (Admission::Unbound | Admission::StoreLost, _) => Standing::Unbound,
            (Admission::Wait, named) => {
                return Ok(Found::Unclear(self.waiting(store, named.as_ref())));
            }
            (Admission::Refused(misfit), _) => return Err(Refused::misfit(self.config, misfit)),
        };
        Ok(Found::Clear { environment, standing })
    }

    fn waiting(&self, found: Option<StoreId>, named: Option<&StoreBinding>) -> String {
        let Config { namespace, redis, ledger, .. } = self.config;
        match (found, named) {
            (None, Some(named)) => format!(
                "waiting until it is clear whether Redis {} has lost namespace {namespace}, or is \
                 another one than the ledger {} names: its store {} was seen just now, and counts \
                 as lost when nobody has seen it for {} s",
                redis.url,
                ledger.url,
                named.store,
                STORE_UNSEEN.as_secs(),
            ),
            // The first of two looks that have to agree before it is refused.
            _ => format!("looking again at Redis {} and the ledger {}", redis.url, ledger.url),
        }
    }
}

/// Whether what these backends have taken stays taken.
fn reliable(config: &Config, servers: &[Server], synchronous_commit: &str) -> Result<(), Refused> {
    servers.iter().try_for_each(|server| sells(config, server))?;
    if synchronous_commit == "off" {
        return Err(Refused::NotDurable { ledger: config.ledger.url.to_string() });
    }
    Ok(())
}

/// Whether this server may keep stock under these settings. Of a cluster, each has to.
fn sells(config: &Config, server: &Server) -> Result<(), Refused> {
    let Redis { url, mode, .. } = &config.redis;
    let redis = || match mode {
        RedisMode::Single => url.to_string(),
        RedisMode::Cluster => format!("node {} of {url}", server.address),
    };
    match (mode, server.is_cluster) {
        (RedisMode::Single, Some(true)) => return Err(Refused::IsCluster { redis: redis() }),
        (RedisMode::Cluster, Some(false)) => {
            return Err(Refused::IsNoCluster {
                redis: url.to_string(),
                node: server.address.clone(),
            });
        }
        _ => {}
    }
    if server.major_version().is_some_and(|major| major < LEAST_REDIS) {
        let version = server.version.clone().unwrap_or_default();
        return Err(Refused::OldRedis { redis: redis(), version });
    }
    match server.maxmemory_policy.as_deref() {
        Some("noeviction") => {}
        Some(policy) => {
            return Err(Refused::Evicts { redis: redis(), policy: policy.to_owned() });
        }
        None => tracing::warn!(
            redis = redis(),
            "Redis does not say what it does when it is full; make sure that maxmemory-policy is noeviction"
        ),
    }
    Ok(())
}

/// Looks until it is clear; `None` when told to stop first. `on_wait` hears each new reason for
/// waiting.
pub async fn pass(
    mut gate: Gate<'_>,
    shutdown: &Shutdown,
    mut on_wait: impl FnMut(&str),
) -> Result<Option<EnvironmentId>, Refused> {
    let mut pauses = Pauses::new();
    let mut told = String::new();
    loop {
        let reason = match gate.look().await? {
            Found::Clear { environment, standing } => {
                tracing::info!(%environment, ?standing, "ledger and Redis belong together");
                readiness::report(Check::Admission, None);
                return Ok(Some(environment));
            }
            Found::Unclear(reason) => reason,
        };
        if reason != told {
            tracing::warn!(reason, "not at work yet");
            on_wait(&reason);
            readiness::report(Check::Admission, Some(reason.clone()));
            told = reason;
        }
        tokio::select! {
            () = tokio::time::sleep(pauses.next_pause()) => {}
            () = shutdown.stop.cancelled() => return Ok(None),
        }
    }
}

/// Waits until the broker has everything that a deployment has there, or until told to stop.
/// `service` is what operators see at the broker.
pub async fn declare(config: &Config, service: &str, shutdown: &Shutdown) -> Result<(), Refused> {
    let mut pauses = Pauses::new();
    let mut told = String::new();
    while let Err(error) = queue::declare(&config.rabbitmq, &config.namespace, service).await {
        let reason = match Refused::by_the_broker(config, error) {
            Ok(refused) => return Err(refused),
            Err(away) => away.to_string(),
        };
        if reason != told {
            tracing::warn!(reason, "waiting for RabbitMQ");
            told = reason;
        }
        tokio::select! {
            () = tokio::time::sleep(pauses.next_pause()) => {}
            () = shutdown.stop.cancelled() => return Ok(()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    #[test]
    fn only_backends_that_forget_nothing_can_be_relied_upon() {
        let config = load(Sources::default()).expect("defaults");
        let judged = |version: Option<&str>, policy: Option<&str>, durable| {
            let server = Server {
                version: version.map(str::to_owned),
                maxmemory_policy: policy.map(str::to_owned),
                ..Server::default()
            };
            reliable(&config, &[server], durable)
        };
        let good = Some("noeviction");
        for durable in ["on", "local", "remote_write", "remote_apply"] {
            judged(Some("7.0.0"), good, durable).expect("good");
        }
        judged(Some("8.2.1"), None, "on").expect("nothing is known against it");
        judged(None, good, "on").expect("nothing is known against it");
        let refused = judged(Some("6.2.14"), good, "on").expect_err("too old");
        assert!(refused.to_string().contains("version 6.2.14"), "{refused}");
        for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
            let refused = judged(Some("7.0.0"), Some(policy), "on").expect_err("it evicts");
            assert!(refused.to_string().contains(policy), "{refused}");
        }
        let refused = judged(Some("7.0.0"), good, "off").expect_err("not durable");
        assert!(refused.to_string().contains("synchronous_commit"), "{refused}");
    }
    #[test]
    fn one_redis_and_a_cluster_are_not_taken_for_each_other() {
        let judged = |mode: &str, servers: &[Option<bool>]| {
            let flags = vec![("redis.mode", mode.to_owned())];
            let config = load(Sources { flags, ..Sources::default() }).expect("settings");
            let servers: Vec<_> = servers
                .iter()
                .map(|is_cluster| Server { is_cluster: *is_cluster, ..Server::default() })
                .collect();
            reliable(&config, &servers, "on").map_err(|refused| refused.to_string())
        };
        for (mode, servers) in
            [("single", &[Some(false)][..]), ("single", &[None]), ("cluster", &[Some(true), None])]
        {
            judged(mode, servers).expect("they fit, or nothing is known");
        }
        let refused = judged("single", &[Some(true)]).expect_err("a cluster");
        assert!(refused.contains("redis.mode") && refused.contains("to cluster"), "{refused}");
        let refused = judged("cluster", &[Some(true), Some(false)]).expect_err("no cluster");
        assert!(refused.contains("redis.mode") && refused.contains("to single"), "{refused}");
    }

    #[test]
    fn one_node_of_a_cluster_that_evicts_is_named() {
        let flags = vec![("redis.mode", "cluster".to_owned())];
        let config = load(Sources { flags, ..Sources::default() }).expect("settings");
        let node = |address: &str, policy: &str| Server {
            address: address.to_owned(),
            maxmemory_policy: Some(policy.to_owned()),
            ..Server::default()
        };
        let nodes = [node("a:7000", "noeviction"), node("b:7001", "allkeys-lru")];
        let refused = reliable(&config, &nodes, "on").expect_err("it evicts").to_string();
        assert!(refused.contains("b:7001") && !refused.contains("a:7000"), "{refused}");
    }
}
