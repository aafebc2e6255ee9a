//! A burst of purchases through the whole line.

use shared::domain::ItemId;
use shared::stock::Layout;

use super::deciding::{confirmed, held, until_settled};
use crate::deployment::Deployment;
use crate::volley::{Pace, Volley};

/// Purchases on so many connections, each sent as soon as the last one is answered.
#[derive(Debug, Clone, Copy)]
pub struct Burst<'a> {
    pub items: &'a [(ItemId, Layout)],
    pub purchases: u64,
    pub connections: usize,
    /// Tells its buyers from those of others: four characters at most.
    pub tag: &'a str,
}

/// What it came to.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub accepted_per_second: f64,
    /// Until the ledger has confirmed and Redis has settled every purchase.
    pub confirmed_per_second: f64,
}

impl Burst<'_> {
    /// Buys, and waits until everything is final. The services run already; a few purchases go
    /// ahead, because what has just started answers its first ones slower.
    pub async fn pass(self, deployment: &Deployment) -> anyhow::Result<Passed> {
        let Self { items, purchases, .. } = self;
        let (earlier, left) = (confirmed(deployment).await?, held(deployment, items).await?);
        let ahead = purchases / 10;
        self.volley(deployment, "w", ahead).fire().await?.all(202)?;
        until_settled(deployment, items, earlier + ahead, left).await?;
        let fired = self.volley(deployment, "f", purchases).fire().await?.all(202)?;
        until_settled(deployment, items, earlier + ahead + purchases, left).await?;
        let took = fired.begun.elapsed();
        Ok(Passed {
            accepted_per_second: fired.per_second(202),
            confirmed_per_second: purchases as f64 / took.as_secs_f64(),
        })
    }

    fn volley(&self, deployment: &Deployment, part: &str, requests: u64) -> Volley {
        Volley {
            address: deployment.address(),
            items: self.items.iter().map(|(item, _)| item.to_string()).collect(),
            connections: self.connections,
            requests,
            pace: Pace::Closed,
            tag: format!("{}{part}", self.tag),
        }
    }
}
