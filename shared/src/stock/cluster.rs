//! A Redis Cluster: each call goes to the server that serves its keys.
//!
//! The library's own cluster client is not used. While it learns where slots have gone, it lets every
//! call wait, also those for servers that are well, and it connects to the lost one meanwhile; and it
//! does not look again when a server only stays silent. Here each server has a connection of its own,
//! supervised like that of a single Redis: one that is lost holds up nobody else's calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::FromRedisValue;
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::{Refusal, StockError};
use super::lookout::{Nodes, Sight, look_out};
use super::node::{Node, REPLACEMENT_WAIT, client};
use super::script::Call;
use super::slots::{Slot, View};
use crate::config::NodeUrls;

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
        let nodes = Arc::new(Nodes::of(urls));
        let (seen, sight) = watch::channel(Sight::none_yet());
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

/// A script without keys could run anywhere; none of ours may.
fn no_keys() -> StockError {
    let reason = "this script has no keys, so that no node is its own".to_owned();
    StockError::Unreachable { address: String::new(), reason }
}
