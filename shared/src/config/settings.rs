//! Every setting: its name, its default, and what it is for. The reference in the documentation is
//! printed from this table by `lastunit config --reference`.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error};

use super::{BackendUrl, NodeUrls};
use crate::domain::Namespace;

/// One thing that can be set.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its path in `lastunit.toml`, for example `redis.url`.
    pub path: &'static str,
    pub default: &'static str,
    /// One sentence for people, with units and range.
    pub help: &'static str,
}

/// Every setting, in the order in which they are explained.
pub const SETTINGS: &[Setting] = &[
    Setting {
        path: "namespace",
        default: "lastunit",
        help: "Name of this deployment, in front of every Redis key and RabbitMQ name: 1–32 of a–z 0–9 -.",
    },
    Setting {
        path: "http.listen",
        default: "127.0.0.1:8080",
        help: "Address and port on which ingress answers; port 0 takes a free one.",
    },
    Setting {
        path: "redis.url",
        default: "redis://127.0.0.1:6379/",
        help: "Redis 7.0 or newer, with maxmemory-policy noeviction; rediss:// for TLS. Of a cluster, one or more of its nodes, separated by commas: the rest is learnt from any that answers.",
    },
    Setting {
        path: "redis.mode",
        default: "single",
        help: "`single`, or `cluster` for a Redis Cluster, over whose nodes items are spread.",
    },
    Setting {
        path: "redis.first_look_ms",
        default: "30000",
        help: "After how many milliseconds an unfinished hold is looked at, 10000–600000; the pause doubles with each further look, up to 10 minutes.",
    },
    Setting {
        path: "redis.checks_incarnation",
        default: "true",
        help: "`true`, or `false` where a managed Redis hides `master_replid` from INFO: then a restart or failover that forgets sales is not noticed before the next comparison.",
    },
    Setting {
        path: "redis.replicas",
        default: "0",
        help: "How many replicas of Redis must have an item lock before it counts, 0–10; more than follow Redis would let no lock be taken.",
    },
    Setting {
        path: "rabbitmq.url",
        default: "amqp://guest:guest@127.0.0.1:5672/%2f",
        help: "RabbitMQ 3.10 or newer, path = virtual host; amqps:// for TLS.",
    },
    Setting {
        path: "rabbitmq.partitions",
        default: "4",
        help: "Order queues, 1–64; the same number in every process of a deployment.",
    },
    Setting {
        path: "ledger.url",
        default: "postgres://postgres@127.0.0.1:5432/lastunit",
        help: "PostgreSQL 14 or newer, path = database.",
    },
    Setting {
        path: "ledger.connections",
        default: "4",
        help: "Most connections that one process opens to the ledger, 1–100.",
    },
    Setting {
        path: "dead_letters.patience_s",
        default: "0",
        help: "After how many seconds the reconciler discards a parked reservation whose sale is over, up to 31536000; 0 is never.",
    },
    Setting {
        path: "dead_letters.keep_days",
        default: "90",
        help: "For how many days replayed and discarded letters are kept, 1–3650; parked ones are kept for ever.",
    },
    Setting {
        path: "reconciler.warm_lead_s",
        default: "600",
        help: "How many seconds before its sale opens an item is warmed up by itself, 0–604800.",
    },
    Setting {
        path: "metrics.listen",
        default: "",
        help: "Address and port on which a process also serves `/metrics` and `/readyz`, for services without HTTP of their own; empty for none.",
    },
    Setting {
        path: "log.filter",
        default: "info",
        help: "Which log lines services write, for example `info` or `warn,consumer=debug`; other commands write warnings, or what `--log` says.",
    },
    Setting {
        path: "log.format",
        default: "text",
        help: "How log lines are written to standard error: `text` for people, `json` for machines.",
    },
];

impl Setting {
    /// The environment variable that sets it, for example `LASTUNIT_REDIS_URL`.
    pub fn variable(&self) -> String {
        format!("LASTUNIT_{}", self.path.replace('.', "_").to_uppercase())
    }
}

/// The effective settings of a process.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(deserialize_with = "from_text")]
    pub namespace: Namespace,
    pub http: Http,
    pub redis: Redis,
    pub rabbitmq: RabbitMq,
    pub ledger: Ledger,
    pub dead_letters: DeadLetters,
    pub reconciler: Reconciler,
    pub metrics: Metrics,
    pub log: Log,
}

/// How ingress is reached.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    #[serde(deserialize_with = "from_text")]
    pub listen: SocketAddr,
}

/// Where stock is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    #[serde(deserialize_with = "from_text")]
    pub url: NodeUrls,
    pub mode: RedisMode,
    #[serde(deserialize_with = "within::<10_000, 600_000, _, _>")]
    pub first_look_ms: u32,
    pub checks_incarnation: bool,
    #[serde(deserialize_with = "within::<0, 10, _, _>")]
    pub replicas: u8,
}

/// What kind of Redis keeps the stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedisMode {
    /// One server, with or without replicas.
    Single,
    /// Several primaries, each for a part of the items.
    Cluster,
}

impl Redis {
    /// What of these settings cannot go together.
    pub(super) fn contradiction(&self) -> Option<String> {
        let nodes = self.url.all().count();
        match self.mode {
            RedisMode::Single if nodes > 1 => Some(format!(
                "redis.url names {nodes} nodes, and redis.mode is single: name one, or set \
                 redis.mode (LASTUNIT_REDIS_MODE) to cluster"
            )),
            RedisMode::Cluster if !self.url.are_alike() => Some(
                "all nodes in redis.url must have the same scheme, user and password: those of the \
                 first are used for every node of the cluster"
                    .to_owned(),
            ),
            RedisMode::Cluster if !self.url.all().all(|url| url.has_path_in(&["", "/", "/0"])) => Some(
                "redis.url names a database, and a cluster has none: leave out what follows the port"
                    .to_owned(),
            ),
            RedisMode::Single | RedisMode::Cluster => None,
        }
    }

    /// After how long an unfinished hold is looked at.
    pub fn first_look(&self) -> Duration {
        Duration::from_millis(u64::from(self.first_look_ms))
    }
}

/// Where messages travel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RabbitMq {
    #[serde(deserialize_with = "from_text")]
    pub url: BackendUrl,
    #[serde(deserialize_with = "within::<1, 64, _, _>")]
    pub partitions: u16,
}

/// Where orders are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    #[serde(deserialize_with = "from_text")]
    pub url: BackendUrl,
    #[serde(deserialize_with = "within::<1, 100, _, _>")]
    pub connections: u16,
}

/// How long dead letters wait, and are kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetters {
    #[serde(deserialize_with = "within::<0, 31_536_000, _, _>")]
    pub patience_s: u32,
    #[serde(deserialize_with = "within::<1, 3_650, _, _>")]
    pub keep_days: u32,
}

impl DeadLetters {
    /// How long a parked reservation waits after its sale; `None` is for ever.
    pub fn patience(&self) -> Option<Duration> {
        (self.patience_s > 0).then(|| Duration::from_secs(self.patience_s.into()))
    }

    /// How long settled letters are kept.
    pub fn kept(&self) -> Duration {
        Duration::from_secs(u64::from(self.keep_days) * 24 * 60 * 60)
    }
}

/// When the reconciler acts by itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconciler {
    #[serde(deserialize_with = "within::<0, 604_800, _, _>")]
    pub warm_lead_s: u32,
}

impl Reconciler {
    /// How long before its sale opens an item is warmed up.
    pub fn warm_lead(&self) -> Duration {
        Duration::from_secs(u64::from(self.warm_lead_s))
    }
}

/// How numbers are reached, besides `/metrics` of ingress.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    #[serde(deserialize_with = "from_text_or_empty")]
    pub listen: Option<SocketAddr>,
}

/// What is told, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub filter: String,
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

impl Config {
    /// The effective values by path, in the order of [`SETTINGS`], with passwords hidden.
    pub fn shown(&self) -> Vec<(&'static str, String)> {
        let value = |path| match path {
            "namespace" => self.namespace.to_string(),
            "http.listen" => self.http.listen.to_string(),
            "redis.url" => self.redis.url.to_string(),
            "redis.mode" => format!("{:?}", self.redis.mode).to_lowercase(),
            "redis.first_look_ms" => self.redis.first_look_ms.to_string(),
            "redis.checks_incarnation" => self.redis.checks_incarnation.to_string(),
            "redis.replicas" => self.redis.replicas.to_string(),
            "rabbitmq.url" => self.rabbitmq.url.to_string(),
            "rabbitmq.partitions" => self.rabbitmq.partitions.to_string(),
            "ledger.url" => self.ledger.url.to_string(),
            "ledger.connections" => self.ledger.connections.to_string(),
            "dead_letters.patience_s" => self.dead_letters.patience_s.to_string(),
            "dead_letters.keep_days" => self.dead_letters.keep_days.to_string(),
            "reconciler.warm_lead_s" => self.reconciler.warm_lead_s.to_string(),
            "metrics.listen" => self.metrics.listen.map(|at| at.to_string()).unwrap_or_default(),
            "log.filter" => self.log.filter.clone(),
            "log.format" => format!("{:?}", self.log.format).to_lowercase(),
            other => unreachable!("{other} is not a setting"),
        };
        SETTINGS.iter().map(|setting| (setting.path, value(setting.path))).collect()
    }
}

fn from_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: std::fmt::Display>,
    D: Deserializer<'de>,
{
    String::deserialize(deserializer)?.parse().map_err(Error::custom)
}

/// Nothing at all is `None`.
fn from_text_or_empty<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: std::fmt::Display>,
    D: Deserializer<'de>,
{
    match String::deserialize(deserializer)?.as_str() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(Error::custom),
    }
}

fn within<'de, const LOW: u32, const HIGH: u32, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<u32>,
    D: Deserializer<'de>,
{
    let number = i64::deserialize(deserializer)?;
    u32::try_from(number)
        .ok()
        .filter(|number| (LOW..=HIGH).contains(number))
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| Error::custom(format!("{number} is not from {LOW} to {HIGH}")))
}
