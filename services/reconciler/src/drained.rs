//! Waits until what was reserved before Redis lost an item has been decided.

use std::collections::HashMap;
use std::time::Instant;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use shared::config::Config;
use shared::config::limits::{DRAIN, RECONCILE_ROUND};
use shared::domain::{Drain, ItemId, partition};
use shared::ledger::Ledger;
use shared::queue::ready_messages;
use shared::stock::Stock;

use crate::rounds::ITEMS_AT_ONCE;
use crate::warm::{WarmError, look};

/// Returns at once when Redis has lost none of these items; else `on_wait` is told how many, and it
/// may take as long as [`DRAIN`](shared::config::limits::DRAIN) for all of them
/// together. For commands: the reconciler watches all the time. Unknown items are none of its
/// business.
pub async fn until_drained(
    config: &Config,
    ledger: &Ledger,
    stock: &Stock,
    items: &[ItemId],
    on_wait: impl FnOnce(usize),
) -> Result<(), WarmError> {
    let began = Instant::now();
    let mut drains: HashMap<ItemId, Drain> = lost(ledger, stock, items)
        .await?
        .into_iter()
        .map(|item| (item, Drain::begin(DRAIN, began.elapsed())))
        .collect();
    if drains.is_empty() {
        return Ok(());
    }
    on_wait(drains.len());
    loop {
        // A broker that is away delivers nothing either; patience bounds the wait.
        let ready = ready_messages(&config.rabbitmq, &config.namespace).await.unwrap_or_default();
        let now = began.elapsed();
        for (item, drain) in &mut drains {
            let partition = partition(item, config.rabbitmq.partitions);
            drain.observe(now, ready.get(&partition).copied().unwrap_or(u32::MAX));
        }
        drains.retain(|_, drain| !drain.is_over(now));
        if drains.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(RECONCILE_ROUND).await;
    }
}

/// Those that Redis has lost, or may have.
async fn lost(ledger: &Ledger, stock: &Stock, items: &[ItemId]) -> Result<Vec<ItemId>, WarmError> {
    let looks = stream::iter(items.to_vec()).map(|item| is_lost(ledger, stock, item));
    let lost: Vec<_> = looks.buffer_unordered(ITEMS_AT_ONCE).try_collect().await?;
    Ok(lost.into_iter().flatten().collect())
}

async fn is_lost(
    ledger: &Ledger,
    stock: &Stock,
    item: ItemId,
) -> Result<Option<ItemId>, WarmError> {
    let seen = match look(ledger, stock, &item).await {
        Err(WarmError::UnknownItem(_)) => return Ok(None),
        seen => seen?,
    };
    Ok(seen.readiness().has_lost_sales().then_some(item))
}
