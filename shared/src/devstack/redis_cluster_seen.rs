//! How a private Redis Cluster stands, as its members see it.

use std::ops::Range;

use super::StackError;
use super::redis_cluster::{MEMBERS, PRIMARIES, RedisCluster, SLOTS};

/// A member, as it is seen by one that works.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    id: String,
    port: u16,
    pub(super) is_primary: bool,
    /// What a replica follows.
    leader: Option<String>,
    pub(super) is_failing: bool,
    pub(super) slots: Vec<Range<usize>>,
}

impl RedisCluster {
    /// The number of the member that serves a key.
    pub fn owner_of(&self, key: &str) -> Result<usize, StackError> {
        let mut owner = None;
        self.until("whole enough to say whose a key is", || {
            owner = self.seen_owner_of(key)?;
            Ok(owner.is_some())
        })?;
        Ok(owner.unwrap_or_default())
    }

    /// The number of the member that follows another.
    pub fn replica_of(&self, leader: usize) -> Result<Option<usize>, StackError> {
        let seen = self.seen()?;
        let port = self.members[leader].port();
        let id = seen.iter().find(|one| one.port == port).map(|one| one.id.clone());
        let follows = |one: &&Seen| !one.is_failing && one.leader.is_some() && one.leader == id;
        Ok(seen.iter().find(follows).and_then(|one| self.number_of(one)))
    }

    /// Whether all members but one see every slot served.
    pub(super) fn is_ok(&self, but: Option<usize>) -> Result<bool, StackError> {
        all((0..MEMBERS).filter(|number| Some(*number) != but), |number| {
            Ok(self.ask(number, "CLUSTER INFO")?.starts_with("cluster_state:ok"))
        })
    }

    pub(super) fn all_follow(&self) -> Result<bool, StackError> {
        let replicas: Vec<_> = self
            .seen()?
            .iter()
            .filter(|one| !one.is_primary)
            .filter_map(|one| self.number_of(one))
            .collect();
        let follows =
            |number| Ok(self.ask(number, "INFO replication")?.contains("master_link_status:up"));
        Ok(replicas.len() == MEMBERS - PRIMARIES && all(replicas.into_iter(), follows)?)
    }

    pub(super) fn seen_owner_of(&self, key: &str) -> Result<Option<usize>, StackError> {
        for number in self.running() {
            let Ok(slot) = self.ask(number, &format!("CLUSTER KEYSLOT {key}")) else { continue };
            let slot: usize = slot.parse().unwrap_or(SLOTS);
            let seen = self.seen_by(number)?;
            let serves = |one: &&Seen| {
                one.is_primary
                    && !one.is_failing
                    && one.slots.iter().any(|range| range.contains(&slot))
            };
            return Ok(seen.iter().find(serves).and_then(|one| self.number_of(one)));
        }
        Ok(None)
    }

    /// The members, as the first sees them that answers.
    pub(super) fn seen(&self) -> Result<Vec<Seen>, StackError> {
        let mut last = self.seen_by(0);
        for number in self.running() {
            last = self.seen_by(number);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    pub(super) fn seen_by(&self, number: usize) -> Result<Vec<Seen>, StackError> {
        let nodes = self.ask(number, "CLUSTER NODES")?;
        Ok(nodes
            .lines()
            .filter_map(read_seen)
            .filter(|one| self.number_of(one).is_some())
            .collect())
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MEMBERS).filter(|number| !self.members[*number].pids().is_empty())
    }

    fn number_of(&self, seen: &Seen) -> Option<usize> {
        self.members.iter().position(|member| member.port() == seen.port)
    }
}

pub(super) fn all(
    mut numbers: impl Iterator<Item = usize>,
    is_so: impl Fn(usize) -> Result<bool, StackError>,
) -> Result<bool, StackError> {
    numbers.try_fold(true, |so_far, number| Ok(so_far && is_so(number)?))
}

/// A line of `CLUSTER NODES`: id, address, flags, leader, three numbers, link, then slots.
fn read_seen(line: &str) -> Option<Seen> {
    let words: Vec<_> = line.split(' ').collect();
    let [id, address, flags, leader, _, _, _, _, slots @ ..] = words.as_slice() else {
        return None;
    };
    let port = address.split('@').next()?.rsplit(':').next()?.parse().ok()?;
    let flags: Vec<_> = flags.split(',').collect();
    let is_one = |flag| flags.contains(&flag);
    let range = |range: &&str| {
        let (first, last) = range.split_once('-').unwrap_or((*range, *range));
        Some(first.parse().ok()?..last.parse::<usize>().ok()? + 1)
    };
    Some(Seen {
        id: (*id).to_owned(),
        port,
        is_primary: is_one("master"),
        leader: (*leader != "-").then(|| (*leader).to_owned()),
        is_failing: ["fail", "fail?", "handshake", "noaddr"].into_iter().any(is_one),
        // What is only moving stands in brackets.
        slots: slots.iter().filter_map(range).collect(),
    })
}
