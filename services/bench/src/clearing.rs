//! Takes a deployment out of the backends again, but for Redis, which is emptied as a whole.

use anyhow::Context;
use lapin::options::QueueDeleteOptions;
use lapin::{Connection, ConnectionProperties};
use shared::config::Config;
use shared::queue::Queue;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, PgConnection};
use url::Url;

/// Removes its queues and its database. `home` is a database that stays.
pub(crate) async fn clear(config: &Config, home: &str) -> anyhow::Result<()> {
    delete_queues(config).await.context("cannot delete the queues of a deployment")?;
    drop_database(config, home).await.context("cannot drop the database of a deployment")
}

async fn delete_queues(config: &Config) -> anyhow::Result<()> {
    let url = config.rabbitmq.url.expose();
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let others = [Queue::Unrouted, Queue::Compensations, Queue::Dead];
    for queue in (0..config.rabbitmq.partitions).map(Queue::Orders).chain(others) {
        let name = format!("{}.{queue}", config.namespace);
        channel.queue_delete(name.as_str().into(), QueueDeleteOptions::default()).await?;
    }
    connection.close(200, "cleared".into()).await?;
    Ok(())
}

async fn drop_database(config: &Config, home: &str) -> anyhow::Result<()> {
    let url: Url = config.ledger.url.expose().parse()?;
    let name = url.path().trim_start_matches('/');
    // The name was made of letters, digits and `_` when the database was.
    let drop = AssertSqlSafe(format!("DROP DATABASE \"{name}\" WITH (FORCE)"));
    let mut connection = PgConnection::connect_with(&options(home)?).await?;
    sqlx::query(drop).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// How the benchmark itself connects to a database: what it does there may be slow, and is no news.
pub(crate) fn options(url: &str) -> anyhow::Result<PgConnectOptions> {
    Ok(url.parse::<PgConnectOptions>()?.disable_statement_logging())
}
