//! The rivals: which there are, and the backends that each of them has.

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo};
use shared::config;
use shared::config::Config;
use shared::config::limits::{CONNECT_DEADLINE, REDIS_DEADLINE};
use shared::domain::Books;

use super::counter::Counter;
use super::database::Database;
use super::lock::Locks;
use super::purchase::{Outcome, Purchase, Trouble};
use super::{conditional, naive, optimistic, pre_deduct, redis_lock, row_lock};

/// A design of the sale, other than ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    Naive,
    Conditional,
    RowLock,
    Optimistic,
    RedisLock,
    PreDeduct,
}

/// A design at work; cheap to clone.
#[derive(Clone)]
pub struct Rival {
    pub design: Design,
    pub backends: Backends,
}

/// The same for all: a pool of connections to the database, one multiplexed connection to Redis.
#[derive(Clone)]
pub struct Backends {
    pub database: Database,
    pub counter: Counter,
    pub locks: Locks,
}

/// What a rival's backends say after a sale.
pub struct SaleBooks {
    pub items: Vec<(String, Books)>,
    pub orders: u64,
}

impl Design {
    /// The control first, then from the simplest to the most involved.
    pub const ALL: [Self; 6] = [
        Self::Naive,
        Self::Conditional,
        Self::RowLock,
        Self::Optimistic,
        Self::RedisLock,
        Self::PreDeduct,
    ];

    /// Short and stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "read then write",
            Self::Conditional => "conditional update",
            Self::RowLock => "row lock",
            Self::Optimistic => "version column",
            Self::RedisLock => "redis lock",
            Self::PreDeduct => "redis deduct",
        }
    }

    /// Whether what is left is counted in Redis, too.
    pub fn counts_in_redis(self) -> bool {
        matches!(self, Self::RedisLock | Self::PreDeduct)
    }
}

impl Rival {
    pub async fn purchase(&self, purchase: &Purchase) -> Result<Outcome, Trouble> {
        let backends = &self.backends;
        match self.design {
            Design::Naive => naive::purchase(backends, purchase).await,
            Design::Conditional => conditional::purchase(backends, purchase).await,
            Design::RowLock => row_lock::purchase(backends, purchase).await,
            Design::Optimistic => optimistic::purchase(backends, purchase).await,
            Design::RedisLock => redis_lock::purchase(backends, purchase).await,
            Design::PreDeduct => pre_deduct::purchase(backends, purchase).await,
        }
    }

    /// Puts items on sale in empty tables.
    pub async fn put(&self, items: &[String], units: i64) -> Result<(), Trouble> {
        self.backends.database.put(items, units).await?;
        if self.design.counts_in_redis() {
            self.backends.counter.put(items, units).await?;
        }
        Ok(())
    }

    /// What the backends say.
    pub async fn books(&self) -> Result<SaleBooks, Trouble> {
        let mut books = SaleBooks { items: Vec::new(), orders: 0 };
        for row in self.backends.database.rows().await? {
            let redis = match self.design.counts_in_redis() {
                true => self.backends.counter.available(&row.item_id).await?,
                false => None,
            };
            books.orders += u64::try_from(row.orders).unwrap_or(0);
            books.items.push((row.item_id.clone(), row.books(redis)));
        }
        Ok(books)
    }
}

impl Backends {
    /// Connects to everything.
    pub async fn open(config: &Config, connections: u32) -> Result<Self, Trouble> {
        let client = client(&config.redis)?;
        let prefix = format!("{}:rivals", config.namespace);
        let connection = connect(&client).await?;
        Ok(Self {
            database: Database::open(&config.ledger, connections).await?,
            counter: Counter::new(connection.clone(), &prefix),
            locks: Locks::new(&client, connection, &prefix).await?,
        })
    }
}

fn client(redis: &config::Redis) -> Result<Client, redis::RedisError> {
    let info = redis.url.expose().into_connection_info()?;
    Client::open(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))
}

async fn connect(client: &Client) -> Result<MultiplexedConnection, redis::RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_DEADLINE))
        .set_response_timeout(Some(REDIS_DEADLINE));
    client.get_multiplexed_async_connection_with_config(&config).await
}
