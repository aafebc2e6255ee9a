//! Looks into the database while a sale is on: what is sold, who waits for a row, how many
//! transactions write. For every contestant alike, a hundred times a second.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const EVERY: Duration = Duration::from_millis(10);

/// Of them, the median is told.
const COMMITS: usize = 101;

/// Looks until it is asked what it saw.
pub(super) struct Observer {
    stop: oneshot::Sender<()>,
    looking: JoinHandle<Result<Seen, sqlx::Error>>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Units that are sold, whenever that changed.
    sold: Vec<(Instant, u64)>,
    looks: u32,
    waiting: u64,
    /// Transactions of the whole server that wrote, those included that were rolled back.
    pub(super) transactions: u64,
}

impl Observer {
    /// Looks at these items, in this schema.
    pub(super) async fn start(
        url: &str,
        schema: &'static str,
        items: &[String],
    ) -> Result<Self, sqlx::Error> {
        let options: PgConnectOptions = url.parse()?;
        let options = options.options([("search_path", schema)]);
        let mut connection = options.connect().await?;
        let before = transactions(&mut connection).await?;
        let (stop, stopped) = oneshot::channel();
        let looking = tokio::spawn(look(connection, before, items.to_vec(), stopped));
        Ok(Self { stop, looking })
    }

    pub(super) async fn stop(self) -> anyhow::Result<Seen> {
        drop(self.stop);
        Ok(self.looking.await??)
    }
}

impl Seen {
    /// When so many units were sold.
    pub(super) fn sold_at(&self, units: u64) -> Option<Instant> {
        self.sold.iter().find(|(_, sold)| *sold >= units).map(|(at, _)| *at)
    }

    /// Connections that waited for a lock of another, on average.
    pub(super) fn waiting(&self) -> f64 {
        self.waiting as f64 / f64::from(self.looks.max(1))
    }
}

async fn look(
    mut connection: PgConnection,
    before: u64,
    items: Vec<String>,
    mut stopped: oneshot::Receiver<()>,
) -> Result<Seen, sqlx::Error> {
    let mut seen = Seen::default();
    loop {
        let (sold, waiting): (i64, i64) = sqlx::query_as(include_str!("sql/observe.sql"))
            .bind(&items)
            .fetch_one(&mut connection)
            .await?;
        let sold = u64::try_from(sold).unwrap_or(0);
        if seen.sold.last().is_none_or(|(_, last)| *last != sold) {
            seen.sold.push((Instant::now(), sold));
        }
        seen.looks += 1;
        seen.waiting += u64::try_from(waiting).unwrap_or(0);
        // Only the pause is cut short, never a look.
        if tokio::time::timeout(EVERY, &mut stopped).await.is_ok() {
            break;
        }
    }
    seen.transactions = transactions(&mut connection).await?.saturating_sub(before);
    connection.close().await?;
    Ok(seen)
}

/// How long a transaction takes that only writes a few bytes: no design commits an order faster.
pub(super) async fn one_commit(url: &str) -> Result<Duration, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let mut taken = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let begun = Instant::now();
        sqlx::query("SELECT pg_logical_emit_message(true, 'bench', 'one commit')")
            .execute(&mut connection)
            .await?;
        taken.push(begun.elapsed());
    }
    connection.close().await?;
    taken.sort();
    Ok(taken[COMMITS / 2])
}

/// The number of the next transaction that writes; reading it is none.
async fn transactions(connection: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let next: i64 =
        sqlx::query_scalar("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            .fetch_one(connection)
            .await?;
    Ok(u64::try_from(next).unwrap_or(0))
}
