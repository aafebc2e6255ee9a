//! Deployments that stay through all rounds, of which one works at a time.

use shared::domain::ItemId;
use shared::stock::Layout;

use super::growth::Measure;
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::stages::burst::{Burst, Passed};

pub(super) const MEASURES: &[Measure] =
    &[("accepted", "purchases/s"), ("confirmed and settled", "orders/s")];

const CONNECTIONS: usize = 256;
const CONSUMERS: u32 = 2;

/// Enough stock for every round.
pub(super) const PLENTY: u64 = 100_000_000;

/// A deployment and what it sells.
pub(super) struct Line {
    pub(super) deployment: Deployment,
    pub(super) items: Vec<(ItemId, Layout)>,
    /// The reconciler looks at everything that there is, so that it is part of most growth.
    pub(super) has_reconciler: bool,
}

impl Line {
    /// Starts the services, lets a burst through, and stops them again.
    pub(super) async fn burst(&mut self, plan: &Plan, tag: &str) -> anyhow::Result<Vec<f64>> {
        let Self { deployment, items, has_reconciler } = self;
        deployment.start("ingress").await?;
        for _ in 0..CONSUMERS {
            deployment.start("consumer").await?;
        }
        deployment.start("compensator").await?;
        if *has_reconciler {
            deployment.start("reconciler").await?;
        }
        if let (Some((first, _)), Some((last, _))) = (items.first(), items.last()) {
            deployment.until_known(first).await?;
            deployment.until_known(last).await?;
        }
        let purchases = plan.size(20_000, 500);
        let connections = CONNECTIONS.min(purchases as usize);
        let burst = Burst { items, purchases, connections, tag };
        let Passed { accepted_per_second, confirmed_per_second } = burst.pass(deployment).await?;
        deployment.stop().await?;
        Ok(vec![accepted_per_second, confirmed_per_second])
    }
}

/// Leaves the backends as they were.
pub(super) async fn end(lines: Vec<Line>) -> anyhow::Result<()> {
    for line in lines {
        line.deployment.end().await?;
    }
    Ok(())
}
