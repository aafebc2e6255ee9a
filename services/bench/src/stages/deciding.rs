//! Consumers at work on a backlog, watched from outside.

use std::time::{Duration, Instant};

use anyhow::bail;
use shared::domain::ItemId;
use shared::stock::{Bucket, Layout};

use crate::deployment::{Deployment, POLL};

/// No backlog here takes longer.
const LONGEST: Duration = Duration::from_secs(120);

/// How long a backlog took.
#[derive(Debug, Clone, Copy)]
pub struct Decided {
    /// From the first commit that was seen until the ledger had confirmed all orders and Redis had
    /// settled all holds; starting the processes is not part of it.
    pub took: Duration,
    /// Orders that were confirmed in that time.
    pub orders: u64,
}

impl Decided {
    pub fn per_second(&self) -> f64 {
        self.orders as f64 / self.took.as_secs_f64()
    }
}

/// Starts consumers and waits until so many orders of one unit are confirmed and settled.
pub async fn decide(
    deployment: &mut Deployment,
    items: &[(ItemId, Layout)],
    orders: u64,
    consumers: u32,
) -> anyhow::Result<Decided> {
    let earlier = confirmed(deployment).await?;
    for _ in 0..consumers {
        deployment.start("consumer").await?;
    }
    let until = Instant::now() + LONGEST;
    let (began, first) = loop {
        let confirmed = confirmed(deployment).await? - earlier;
        if confirmed > 0 {
            break (Instant::now(), confirmed);
        }
        wait(until, "the first commit").await?;
    };
    until_settled(deployment, items, earlier + orders, 0).await?;
    Ok(Decided { took: began.elapsed(), orders: orders.saturating_sub(first) })
}

/// Waits until the ledger has confirmed so many units in all, and Redis has no more holds of these
/// items than `left`.
pub async fn until_settled(
    deployment: &Deployment,
    items: &[(ItemId, Layout)],
    units: u64,
    left: u64,
) -> anyhow::Result<()> {
    let until = Instant::now() + LONGEST;
    while confirmed(deployment).await? < units {
        wait(until, "all orders").await?;
    }
    while held(deployment, items).await? > left {
        wait(until, "all holds").await?;
    }
    Ok(())
}

/// Units that the ledger has confirmed: it takes them off in the same transaction.
pub async fn confirmed(deployment: &Deployment) -> anyhow::Result<u64> {
    let sum = "SELECT coalesce(sum(total - available), 0)::bigint FROM items";
    let confirmed: i64 = sqlx::query_scalar(sum).fetch_one(&deployment.database).await?;
    Ok(confirmed.unsigned_abs())
}

/// Holds of all buckets, in one round trip however many there are.
pub async fn held(deployment: &Deployment, items: &[(ItemId, Layout)]) -> anyhow::Result<u64> {
    let mut pipe = redis::pipe();
    for bucket in items.iter().flat_map(|(item, layout)| Bucket::all(item, layout.buckets)) {
        pipe.cmd("ZCARD").arg(deployment.key(&bucket, "held"));
    }
    let held: Vec<u64> = pipe.query_async(&mut deployment.redis.clone()).await?;
    Ok(held.into_iter().sum())
}

async fn wait(until: Instant, what: &str) -> anyhow::Result<()> {
    if Instant::now() >= until {
        bail!("{what} did not come within {LONGEST:?}");
    }
    tokio::time::sleep(POLL).await;
    Ok(())
}
