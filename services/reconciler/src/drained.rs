//! Waits until what was reserved before Redis lost an item has been decided.

use std::time::Instant;

use shared::config::Config;
use shared::config::limits::RECONCILE_ROUND;
use shared::domain::{Drain, ItemId, Readiness, partition};
use shared::ledger::Ledger;
use shared::queue::ready_messages;
use shared::stock::Stock;

use crate::warm::{WarmError, look};

/// Returns at once for an item that has lost nothing; else `on_wait` is told, and it may take as long
/// as [`DRAIN_PATIENCE`](shared::config::limits::DRAIN_PATIENCE). For commands: the reconciler
/// watches many items side by side.
pub async fn until_drained(
    config: &Config,
    ledger: &Ledger,
    stock: &Stock,
    item: &ItemId,
    on_wait: impl FnOnce(),
) -> Result<(), WarmError> {
    let mut drain = Drain::begin(Instant::now());
    let mut on_wait = Some(on_wait);
    loop {
        match look(ledger, stock, item).await?.readiness() {
            Readiness::Uncompared | Readiness::Cold { in_flight: true } => {}
            _ => return Ok(()),
        }
        if let Some(on_wait) = on_wait.take() {
            on_wait();
        }
        // A broker that is away delivers nothing either; patience bounds the wait.
        let ready = ready_messages(&config.rabbitmq, &config.namespace).await.unwrap_or_default();
        let partition = partition(item, config.rabbitmq.partitions);
        drain.observe(Instant::now(), ready.get(&partition).copied().unwrap_or(u32::MAX));
        if drain.is_over(Instant::now()) {
            return Ok(());
        }
        tokio::time::sleep(RECONCILE_ROUND).await;
    }
}
