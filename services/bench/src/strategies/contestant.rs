//! A contestant that is open for buyers: a rival, or this pipeline as it is deployed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use shared::config::Config;
use shared::devstack::World;
use shared::domain::{Books, ItemId};

use super::rival::{Backends, Design, Rival, SaleBooks};
use super::server::Server;
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contestant {
    Rival(Design),
    Pipeline,
}

/// At work; dropping it ends it.
pub(super) enum Open {
    Rival { server: Server, office: Rival, config: Box<Config> },
    Pipeline(Box<Deployment>),
}

/// Queues of orders, and processes that consume them: as in the demo.
const PARTITIONS: u16 = 4;
const CONSUMERS: usize = 2;

/// How long every order may take to be final.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

impl Contestant {
    pub(super) fn all() -> Vec<Self> {
        Design::ALL.into_iter().map(Self::Rival).chain([Self::Pipeline]).collect()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rival(design) => design.name(),
            Self::Pipeline => "pipeline",
        }
    }

    /// Whether it has to break the law, and be caught.
    pub(super) fn is_control(self) -> bool {
        self == Self::Rival(Design::Naive)
    }

    /// Puts so many units of each item on sale, in an empty world, and opens.
    pub(super) async fn open(
        self,
        plan: &Plan,
        rig: &Rig,
        sale: &[(String, u64)],
    ) -> anyhow::Result<Open> {
        match self {
            Self::Rival(design) => {
                let config = World::on(rig.endpoints()).await.config;
                let office = Rival { design, backends: Backends::open(&config, 1).await? };
                office.backends.database.create_tables().await?;
                for (item, units) in sale {
                    office.put(std::slice::from_ref(item), i64::try_from(*units)?).await?;
                }
                let server = Server::start(&config, design).await?;
                Ok(Open::Rival { server, office, config: Box::new(config) })
            }
            Self::Pipeline => {
                let mut deployment = Deployment::new(plan, rig, PARTITIONS).await?;
                for (item, units) in sale {
                    deployment.sell(&item.parse()?, *units, None).await?;
                }
                for _ in 0..CONSUMERS {
                    deployment.start("consumer").await?;
                }
                deployment.start("compensator").await?;
                deployment.start("reconciler").await?;
                deployment.start("ingress").await?;
                for (item, _) in sale {
                    deployment.until_known(&item.parse()?).await?;
                }
                Ok(Open::Pipeline(Box::new(deployment)))
            }
        }
    }
}

impl Open {
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Rival { server, .. } => server.address,
            Self::Pipeline(deployment) => deployment.address(),
        }
    }

    /// Where its orders are: the database, and the schema in it.
    pub(super) fn tables(&self) -> (&str, &'static str) {
        match self {
            Self::Rival { config, .. } => (config.ledger.url.expose(), "rivals"),
            Self::Pipeline(deployment) => (deployment.config.ledger.url.expose(), "public"),
        }
    }

    /// Waits until every purchase is final. A rival has nothing left to do once it has answered.
    pub(super) async fn until_final(&self, items: &[String], units: u64) -> anyhow::Result<()> {
        let Self::Pipeline(deployment) = self else { return Ok(()) };
        let until = Instant::now() + PATIENCE;
        loop {
            let (mut sold, mut held) = (0, 0);
            for item in items {
                let books = books_of(deployment, &item.parse()?).await?;
                sold += books.total - books.ledger_available;
                held += books.held;
            }
            if sold >= units && held == 0 {
                return Ok(());
            }
            if Instant::now() >= until {
                bail!("after {PATIENCE:?}, {sold} of {units} units are sold and {held} are held");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// What the books say in the end.
    pub(super) async fn books(&self, items: &[String]) -> anyhow::Result<SaleBooks> {
        let deployment = match self {
            Self::Rival { office, .. } => return Ok(office.books().await?),
            Self::Pipeline(deployment) => deployment,
        };
        let mut books = SaleBooks { items: Vec::new(), orders: 0 };
        for item in items {
            let id: ItemId = item.parse()?;
            let orders = deployment.ledger.count_orders(&id).await?;
            let counted = Books {
                confirmed_units: orders.confirmed_units,
                ..books_of(deployment, &id).await?
            };
            books.orders += orders.confirmed;
            books.items.push((item.clone(), counted));
        }
        Ok(books)
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Rival { server, office, .. } => {
                office.backends.database.close().await;
                tokio::task::spawn_blocking(move || drop(server)).await?;
                Ok(())
            }
            Self::Pipeline(deployment) => deployment.end().await,
        }
    }
}

/// Redis and the item's row; orders are not counted.
async fn books_of(deployment: &Deployment, item: &ItemId) -> anyhow::Result<Books> {
    let row = deployment.ledger.find_item(item).await?.context("the item has vanished")?;
    let mut books = Books {
        total: row.sale.total,
        confirmed_units: 0,
        ledger_available: row.available,
        redis_available: None,
        held: 0,
        most_by_one_buyer: 0,
        limit_per_buyer: None,
    };
    if let Some(redis) = deployment.stock.snapshot_item(item).await? {
        books.redis_available = Some(redis.available + redis.moving);
        books.held = redis.held;
    }
    Ok(books)
}
