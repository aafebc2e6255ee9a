//! One server of Redis: a multiplexed connection that is replaced when it breaks or stays silent.
//!
//! The library's own manager does not replace a connection that only stays silent, and lets every
//! command wait for seconds while the server is away; here a command then fails at once.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, IntoConnectionInfo, RedisError,
    io::tcp::TcpSettings,
};
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::StockError;
use super::script::Call;
use super::slots::{self, View};
use crate::config::BackendUrl;
use crate::config::limits::{CONNECT_DEADLINE, REDIS_DEADLINE, REPLICATION_DEADLINE};
use crate::retry::Pauses;

/// How often an idle connection is asked whether it still answers.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// How long a call waits for a connection that is just being replaced.
pub(super) const REPLACEMENT_WAIT: Duration = Duration::from_millis(250);

/// A server and a supervised connection to it; clones share it. The supervision ends with the last
/// clone.
#[derive(Clone)]
pub(super) struct Node {
    client: Client,
    url: BackendUrl,
    address: Arc<str>,
    link: watch::Receiver<Link>,
    /// Number of the newest connection that is known to be broken.
    broken: Arc<watch::Sender<u64>>,
}

/// What calls find: a connection and its number, or why there is none.
#[derive(Clone)]
enum Link {
    Up(u64, MultiplexedConnection),
    Down(String),
}

impl Node {
    /// Begins to connect. Only a URL that cannot be used is an error.
    pub(super) fn open(url: &BackendUrl) -> Result<Self, StockError> {
        let client = client(url)?;
        let (up, link) = watch::channel(Link::Down("not connected yet".to_owned()));
        let (broken, reports) = watch::channel(0);
        let address: Arc<str> = url.address().into();
        tokio::spawn(supervise(client.clone(), Arc::clone(&address), up, reports));
        Ok(Self { client, url: url.clone(), address, link, broken: Arc::new(broken) })
    }

    /// `host:port`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What it is reached by.
    pub(super) fn host(&self) -> &str {
        self.url.host()
    }

    /// Runs a script once; sends it before if the server does not have it. A connection that breaks
    /// or does not answer in time is replaced.
    pub(super) async fn run<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, StockError> {
        let (number, mut connection) = self.current().await?;
        let reply = call.invocation.invoke_async(&mut connection).await;
        reply.map_err(|source| self.failed(number, call.name, source))
    }

    /// The same at a server that is just taking over the slot and serves only who says that it was
    /// told so. That word counts for the next command of the connection, so all goes in one piece.
    pub(super) async fn run_asking<T: FromRedisValue>(
        &self,
        call: &Call<'_>,
    ) -> Result<T, StockError> {
        let (number, mut connection) = self.current().await?;
        let reply: redis::RedisResult<(T,)> = redis::pipe()
            .load_script(call.script)
            .ignore()
            .cmd("ASKING")
            .ignore()
            .invoke_script(&call.invocation)
            .query_async(&mut connection)
            .await;
        reply.map(|(reply,)| reply).map_err(|source| self.failed(number, call.name, source))
    }

    /// How this node of a cluster sees the cluster.
    pub(super) async fn view(&self) -> Result<View, StockError> {
        let (number, mut connection) = self.current().await?;
        let seen = slots::ask(&mut connection, self.url.host()).await;
        seen.map_err(|source| self.failed(number, "CLUSTER SLOTS", source))
    }

    /// What the server tells about itself; `None` where it does not let us ask.
    pub(super) async fn info(&self, section: &'static str) -> Result<Option<String>, StockError> {
        let (number, mut connection) = self.current().await?;
        let reply = redis::cmd("INFO").arg(section).query_async(&mut connection).await;
        match reply {
            Ok(text) => Ok(Some(text)),
            Err(source) if matches!(source.code(), Some("NOPERM" | "ERR")) => Ok(None),
            Err(source) => Err(self.failed(number, "INFO", source)),
        }
    }

    /// What a failed call means. A connection that gave no reply is replaced.
    fn failed(&self, number: u64, name: &'static str, source: RedisError) -> StockError {
        let error = StockError::of_call(&self.address, name, source);
        if error.is_unknown() {
            self.broken.send_if_modified(|newest| {
                let is_news = *newest < number;
                *newest = number.max(*newest);
                is_news
            });
        }
        error
    }

    /// Runs a script on a connection of its own, and then waits until `replicas` have what it wrote,
    /// or for as long as they are given; says how many have it. Redis answers for what the asking
    /// connection has written, and lets it wait meanwhile.
    pub(super) async fn run_replicated<T: FromRedisValue>(
        &self,
        call: &Call<'_>,
        replicas: u8,
    ) -> Result<(T, u8), StockError> {
        let mut connection = connect(&self.client).await.map_err(|error| {
            let (address, reason) = (self.address.to_string(), error.to_string());
            StockError::Unreachable { address, reason }
        })?;
        let failed = |source| StockError::of_call(&self.address, call.name, source);
        let reply = call.invocation.invoke_async(&mut connection).await.map_err(failed)?;
        let wait = redis::cmd("WAIT")
            .arg(replicas)
            .arg(REPLICATION_DEADLINE.as_millis().to_string())
            .query_async(&mut connection)
            .await;
        Ok((reply, wait.map_err(failed)?))
    }

    /// A connection that is not known to be broken. One that is just being replaced is waited for,
    /// but not for long: while Redis is away, calls fail at once rather than pile up.
    async fn current(&self) -> Result<(u64, MultiplexedConnection), StockError> {
        let mut link = self.link.clone();
        let works = |link: &Link| match link {
            Link::Up(number, _) => *number > *self.broken.borrow(),
            Link::Down(_) => false,
        };
        if let Ok(Ok(link)) = timeout(REPLACEMENT_WAIT, link.wait_for(works)).await
            && let Link::Up(number, connection) = &*link
        {
            return Ok((*number, connection.clone()));
        }
        let reason = match &*self.link.borrow() {
            Link::Up(..) => "its connection is being replaced".to_owned(),
            Link::Down(reason) => reason.clone(),
        };
        Err(StockError::Unreachable { address: self.address.to_string(), reason })
    }
}

/// Keeps a connection up until nobody can ask for it any more.
async fn supervise(
    client: Client,
    address: Arc<str>,
    link: watch::Sender<Link>,
    mut broken: watch::Receiver<u64>,
) {
    let mut pauses = Pauses::new();
    let (mut number, mut told) = (0, false);
    while broken.has_changed().is_ok() {
        match connect(&client).await {
            Ok(connection) => {
                number += 1;
                tracing::info!(%address, "connected to Redis");
                (pauses, told) = (Pauses::new(), false);
                link.send_replace(Link::Up(number, connection.clone()));
                let Some(reason) = until_broken(number, connection, &mut broken).await else {
                    return;
                };
                tracing::warn!(%address, reason, "replacing the connection to Redis");
                link.send_replace(Link::Down(reason));
            }
            Err(error) => {
                if !told {
                    tracing::warn!(%address, %error, "cannot reach Redis; trying again until it answers");
                    told = true;
                }
                link.send_replace(Link::Down(error.to_string()));
                tokio::time::sleep(pauses.next_pause()).await;
            }
        }
    }
}

/// What connects to a server. Writes leave at once: a call waits for each.
pub(super) fn client(url: &BackendUrl) -> Result<Client, StockError> {
    let info = url.expose().into_connection_info().map_err(StockError::InvalidUrl)?;
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    Client::open(info).map_err(StockError::InvalidUrl)
}

/// Connects once.
pub(super) async fn connect(client: &Client) -> redis::RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_DEADLINE))
        .set_response_timeout(Some(REDIS_DEADLINE));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    // A server that still loads its data accepts connections and refuses commands.
    redis::cmd("PING").exec_async(&mut connection).await?;
    Ok(connection)
}

/// Waits until the connection is reported broken or does not answer; `None` when nobody is left.
async fn until_broken(
    number: u64,
    mut connection: MultiplexedConnection,
    broken: &mut watch::Receiver<u64>,
) -> Option<String> {
    let ping = async {
        loop {
            tokio::time::sleep(IDLE_CHECK).await;
            if let Err(error) = redis::cmd("PING").exec_async(&mut connection).await {
                return error.to_string();
            }
        }
    };
    // Side by side: on a silent connection the ping itself waits, and whoever reports that it is
    // silent is waiting for the next one to ask again.
    tokio::select! {
        reported = broken.wait_for(|newest| *newest >= number) => {
            reported.is_ok().then(|| "a call got no reply".to_owned())
        }
        reason = ping => Some(reason),
    }
}
