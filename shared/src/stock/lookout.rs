//! Looks how a cluster stands: its nodes are asked now and then, and whenever a call gives a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::StockError;
use super::node::{Node, client, connect};
use super::slots::{self, NodeAddress, View};
use crate::config::limits::CONNECT_DEADLINE;
use crate::config::{BackendUrl, NodeUrls};

/// How often the nodes are asked how the cluster stands while nothing goes wrong.
const IDLE_LOOK: Duration = Duration::from_secs(5);

/// The least time between two looks while something does: a crowd of failed calls is one reason.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// How long a node may take to say how it sees the cluster: a silent one holds up nobody.
const LOOK_DEADLINE: Duration = Duration::from_millis(500);

/// How the cluster was seen last.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    /// Counts the looks.
    pub(super) look: u64,
    /// The last view; it outlives looks that nobody answered.
    pub(super) view: Option<Arc<View>>,
    /// Why the last look saw nothing.
    pub(super) trouble: String,
}

/// Every node that is called, or was named for a start.
pub(super) struct Nodes {
    pub(super) seeds: NodeUrls,
    connected: Mutex<BTreeMap<NodeAddress, Node>>,
}

impl Sight {
    pub(super) fn none_yet() -> Self {
        Self { look: 0, view: None, trouble: "not connected yet".to_owned() }
    }
}

impl Nodes {
    /// Nodes that are named for a start.
    pub(super) fn of(seeds: &NodeUrls) -> Self {
        Self { seeds: seeds.clone(), connected: Mutex::default() }
    }

    /// The node at this address; it is connected to when it is called for the first time.
    pub(super) fn at(&self, address: &NodeAddress) -> Result<Node, StockError> {
        let mut connected = self.connected();
        if let Some(node) = connected.get(address) {
            return Ok(node.clone());
        }
        let node = Node::open(&self.url(address)?)?;
        connected.insert(address.clone(), node.clone());
        Ok(node)
    }

    /// Every node of a cluster takes the same credentials.
    fn url(&self, address: &NodeAddress) -> Result<BackendUrl, StockError> {
        let NodeAddress { host, port } = address;
        self.seeds.first().with_host(host, *port).map_err(|error| StockError::Unreachable {
            address: format!("{host}:{port}"),
            reason: error.to_string(),
        })
    }

    /// Lets go of nodes that serve nothing any more, and connects to those that do.
    fn keep(&self, primaries: &BTreeSet<&NodeAddress>) {
        self.connected().retain(|address, _| primaries.contains(address));
        for address in primaries {
            if let Err(error) = self.at(address) {
                tracing::warn!(%error, "a node of the cluster cannot be used");
            }
        }
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<NodeAddress, Node>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all nodes how they see the cluster; those that were named for a start when no other
    /// answers. Who was cut off from the others knows of fewer failovers.
    async fn look(&self) -> Result<View, String> {
        let nodes: Vec<Node> = self.connected().values().cloned().collect();
        let views = nodes.iter().map(|node| timeout(LOOK_DEADLINE, node.view()));
        let views = join_all(views).await.into_iter().filter_map(|view| view.ok()?.ok());
        if let Some(view) = latest(views) {
            return Ok(view);
        }
        let views = join_all(self.seeds.all().map(view_of)).await;
        let trouble = views.iter().find_map(|view| view.as_ref().err().cloned());
        latest(views.into_iter().flatten()).ok_or_else(|| trouble.unwrap_or_default())
    }
}

fn latest(views: impl Iterator<Item = View>) -> Option<View> {
    views.filter(|view| !view.primaries().is_empty()).max_by_key(|view| view.epoch)
}

async fn view_of(url: &BackendUrl) -> Result<View, String> {
    let told = |error: &dyn std::error::Error| format!("{}: {error}", url.address());
    let client = client(url).map_err(|error| told(&error))?;
    let asked = async {
        let mut connection = connect(&client).await?;
        slots::ask(&mut connection, url.host()).await
    };
    let view = timeout(2 * CONNECT_DEADLINE, asked).await;
    let view = view.map_err(|_| format!("{} does not answer", url.address()))?;
    let view = view.map_err(|error| told(&error))?;
    if view.primaries().is_empty() {
        return Err(format!("{} serves no slots, and knows nobody who does", url.address()));
    }
    Ok(view)
}

/// Looks how the cluster stands until nobody can ask any more: now and then, and whenever a call
/// gives a reason.
pub(super) async fn look_out(
    nodes: Arc<Nodes>,
    seen: watch::Sender<Sight>,
    mut reasons: watch::Receiver<u64>,
) {
    let mut told = String::new();
    loop {
        reasons.mark_unchanged();
        match nodes.look().await {
            Ok(view) => {
                let primaries = view.primaries();
                nodes.keep(&primaries);
                let news = seen.borrow().view.as_deref() != Some(&view);
                if news {
                    let primaries: Vec<_> = primaries
                        .iter()
                        .map(|node| format!("{}:{}", node.host, node.port))
                        .collect();
                    let (epoch, complete) = (view.epoch, view.is_complete());
                    tracing::info!(?primaries, epoch, complete, "how the Redis Cluster stands");
                }
                told.clear();
                seen.send_modify(|sight| {
                    sight.look += 1;
                    if news {
                        sight.view = Some(Arc::new(view));
                    }
                });
            }
            Err(trouble) => {
                if trouble != told {
                    tracing::warn!(
                        trouble,
                        "cannot see how the Redis Cluster stands; looking again"
                    );
                    told.clone_from(&trouble);
                }
                seen.send_modify(|sight| sight.trouble = trouble);
            }
        }
        tokio::time::sleep(LOOK_PAUSE).await;
        let is_seen = told.is_empty();
        tokio::select! {
            changed = reasons.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(if is_seen { IDLE_LOOK } else { LOOK_PAUSE }) => {}
        }
    }
}
