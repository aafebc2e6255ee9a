//! A Redis Cluster: each call goes to the server that serves its keys.
//!
//! The library's own cluster client is not used. While it learns where slots have gone, it lets every
//! call wait, also those for servers that are well, and it connects to the lost one meanwhile; and it
//! does not look again when a server only stays silent. Here each server has a connection of its own,
//! supervised like that of a single Redis: one that is lost holds up nobody else's calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::FromRedisValue;
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::{Refusal, StockError};
use super::node::{Node, REPLACEMENT_WAIT, client, connect};
use super::script::Call;
use super::slots::{self, NodeAddress, Slot, View};
use crate::config::limits::CONNECT_DEADLINE;
use crate::config::{BackendUrl, NodeUrls};

/// How often the nodes are asked how the cluster stands while nothing goes wrong.
const IDLE_LOOK: Duration = Duration::from_secs(5);

/// The least time between two looks while something does: a crowd of failed calls is one reason.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// How long a node may take to say how it sees the cluster: a silent one holds up nobody.
const LOOK_DEADLINE: Duration = Duration::from_millis(500);

/// How often a call is sent on. A slot that moves is told by its old owner; more in a row are nodes
/// that do not agree yet.
const HOPS: usize = 4;

/// After how long a call is sent on no more, so that it ends soon after the deadline of one call.
const HOPPING: Duration = Duration::from_millis(250);

/// The nodes of a cluster; clones share them. The look-out ends with the last clone.
#[derive(Clone)]
pub(super) struct Cluster {
    nodes: Arc<Nodes>,
    sight: watch::Receiver<Sight>,
    /// Counts the reasons to look again.
    reasons: Arc<watch::Sender<u64>>,
}

/// How the cluster was seen last.
#[derive(Debug, Clone)]
struct Sight {
    /// Counts the looks.
    look: u64,
    /// The last view; it outlives looks that nobody answered.
    view: Option<Arc<View>>,
    /// Why the last look saw nothing.
    trouble: String,
}

/// Every node that is called, or was named for a start.
struct Nodes {
    seeds: NodeUrls,
    connected: Mutex<BTreeMap<NodeAddress, Node>>,
}

/// Where a call goes.
struct Hop {
    node: Node,
    /// The node is only taking over the slot.
    asking: bool,
    /// What was known when this was decided.
    look: u64,
}

impl Cluster {
    /// Begins to connect. Only URLs that cannot be used are an error.
    pub(super) fn open(urls: &NodeUrls) -> Result<Self, StockError> {
        for url in urls.all() {
            client(url)?;
        }
        let nodes = Arc::new(Nodes { seeds: urls.clone(), connected: Mutex::default() });
        let unseen = Sight { look: 0, view: None, trouble: "not connected yet".to_owned() };
        let (seen, sight) = watch::channel(unseen);
        let (reasons, asked) = watch::channel(0);
        tokio::spawn(look_out(Arc::clone(&nodes), seen, asked));
        Ok(Self { nodes, sight, reasons: Arc::new(reasons) })
    }

    /// Runs a script once, where its keys are.
    pub(super) async fn run<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, StockError> {
        let (since, slot) = (Instant::now(), call.slot.ok_or_else(no_keys)?);
        let mut hop = self.begin(slot).await?;
        let mut hops = 1;
        loop {
            let reply =
                if hop.asking { hop.node.run_asking(call).await } else { hop.node.run(call).await };
            let error = match reply {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let is_last = hops == HOPS || since.elapsed() > HOPPING;
            hop = self.next(slot, &hop, &error).await.filter(|_| !is_last).ok_or(error)?;
            hops += 1;
        }
    }

    /// The same, and waits for replicas of that node.
    pub(super) async fn run_replicated<T: FromRedisValue>(
        &self,
        call: &Call<'_>,
        replicas: u8,
    ) -> Result<(T, u8), StockError> {
        let slot = call.slot.ok_or_else(no_keys)?;
        let hop = self.begin(slot).await?;
        let reply = hop.node.run_replicated(call, replicas).await;
        if let Err(error) = &reply {
            // Whoever waits for replicas asks again anyway.
            self.next(slot, &hop, error).await;
        }
        reply
    }

    /// One of these keys for each primary. An error when not every slot is served.
    pub(super) async fn one_key_each(
        &self,
        keys: impl Iterator<Item = String>,
    ) -> Result<Vec<String>, StockError> {
        let (view, _) = self.view().await?;
        if !view.is_complete() {
            self.look_again();
            return Err(self.unreachable("not every slot of the cluster is served".to_owned()));
        }
        Ok(view.one_key_each(keys))
    }

    /// What every primary tells about itself; while none is known, what the named nodes tell.
    pub(super) async fn info(
        &self,
        section: &'static str,
    ) -> Result<Vec<(String, Option<String>)>, StockError> {
        let Ok((view, _)) = self.view().await else { return self.info_of_seeds(section).await };
        let nodes = view.primaries().into_iter().map(|address| self.nodes.at(address));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let told = join_all(nodes.iter().map(|node| node.info(section))).await;
        let told =
            nodes.iter().zip(told).map(|(node, told)| Ok((node.address().to_owned(), told?)));
        told.collect::<Result<_, StockError>>().inspect_err(|_| self.look_again())
    }

    /// They may be no cluster at all, and say so only when they are asked.
    async fn info_of_seeds(
        &self,
        section: &'static str,
    ) -> Result<Vec<(String, Option<String>)>, StockError> {
        let mut told = Vec::new();
        for url in self.nodes.seeds.all() {
            if let Ok(info) = Node::open(url)?.info(section).await {
                told.push((url.address(), info));
            }
        }
        if told.is_empty() {
            return Err(self.unreachable(self.sight.borrow().trouble.clone()));
        }
        Ok(told)
    }

    async fn begin(&self, slot: Slot) -> Result<Hop, StockError> {
        let (view, look) = self.view().await?;
        let Some(owner) = view.owner(slot) else {
            self.look_again();
            return Err(self.unreachable(format!("no node of the cluster serves slot {slot}")));
        };
        Ok(Hop { node: self.nodes.at(owner)?, asking: false, look })
    }

    /// Where a call may be sent next that failed here and certainly did not run; `None` when it may
    /// have run, or nobody else is known.
    async fn next(&self, slot: Slot, hop: &Hop, error: &StockError) -> Option<Hop> {
        match error.refusal(hop.node.host()) {
            // The call belongs to where it was sent.
            Some(Refusal::OfTheCall) => None,
            Some(Refusal::Moved(address)) => {
                self.look_again();
                let node = self.nodes.at(&address).ok()?;
                Some(Hop { node, asking: false, look: hop.look })
            }
            Some(Refusal::Ask(address)) => {
                let node = self.nodes.at(&address).ok()?;
                Some(Hop { node, asking: true, look: hop.look })
            }
            Some(Refusal::OfTheNode) => {
                self.look_again();
                None
            }
            None if error.is_unknown() => {
                self.look_again();
                None
            }
            // It cannot be reached: another may have taken its place meanwhile.
            None => {
                self.look_again();
                let (view, look) = self.view_after(hop.look).await?;
                let node = self.nodes.at(view.owner(slot)?).ok()?;
                (node.address() != hop.node.address()).then_some(Hop { node, asking: false, look })
            }
        }
    }

    /// The last view. The first is waited for, but not for long.
    async fn view(&self) -> Result<(Arc<View>, u64), StockError> {
        let mut sight = self.sight.clone();
        let is_seen = |sight: &Sight| sight.view.is_some();
        if let Ok(Ok(sight)) = timeout(REPLACEMENT_WAIT, sight.wait_for(is_seen)).await
            && let Some(view) = &sight.view
        {
            return Ok((Arc::clone(view), sight.look));
        }
        Err(self.unreachable(self.sight.borrow().trouble.clone()))
    }

    /// The view of a later look, if one comes soon.
    async fn view_after(&self, look: u64) -> Option<(Arc<View>, u64)> {
        let mut sight = self.sight.clone();
        let is_later = |sight: &Sight| sight.look > look;
        let sight = timeout(REPLACEMENT_WAIT, sight.wait_for(is_later)).await.ok()?.ok()?;
        Some((Arc::clone(sight.view.as_ref()?), sight.look))
    }

    fn look_again(&self) {
        self.reasons.send_modify(|reasons| *reasons += 1);
    }

    fn unreachable(&self, reason: String) -> StockError {
        StockError::Unreachable { address: self.nodes.seeds.address(), reason }
    }
}

impl Nodes {
    /// The node at this address; it is connected to when it is called for the first time.
    fn at(&self, address: &NodeAddress) -> Result<Node, StockError> {
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
async fn look_out(
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

/// A script without keys could run anywhere; none of ours may.
fn no_keys() -> StockError {
    let reason = "this script has no keys, so that no node is its own".to_owned();
    StockError::Unreachable { address: String::new(), reason }
}
