//! Which node of a cluster serves which keys, as its nodes tell it.

use std::collections::BTreeSet;
use std::fmt;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult, Value};

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// The part of a cluster in which a key lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u16);

impl Slot {
    /// The CRC16 of what the key has between its first braces; of the whole key when it has none, or
    /// nothing between them.
    pub(super) fn of(key: &str) -> Self {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let hashed = tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key);
        Self(crc16(hashed.as_bytes()) % SLOTS)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// CRC-16/XMODEM, bit by bit: a key's tag is short.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// A node's host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeAddress {
    pub(super) host: String,
    pub(super) port: u16,
}

impl NodeAddress {
    /// Reads `host:port`. Without a host, it is the one that was asked.
    pub(super) fn parse(text: &str, asked_host: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { asked_host } else { host.trim_matches(['[', ']']) };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }
}

/// A run of slots and the primary that serves them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    primary: NodeAddress,
}

/// The cluster, as one of its nodes sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    /// Raised by every failover: of two views, the one with the higher is the later.
    pub(super) epoch: u64,
    ranges: Vec<Range>,
}

impl View {
    /// Who serves a slot; `None` when nobody does.
    pub(super) fn owner(&self, slot: Slot) -> Option<&NodeAddress> {
        let range = self.ranges.iter().find(|range| (range.first..=range.last).contains(&slot.0));
        range.map(|range| &range.primary)
    }

    /// Every node that serves slots.
    pub(super) fn primaries(&self) -> BTreeSet<&NodeAddress> {
        self.ranges.iter().map(|range| &range.primary).collect()
    }

    /// True when every slot is served.
    pub(super) fn is_complete(&self) -> bool {
        let served: u32 =
            self.ranges.iter().map(|range| u32::from(range.last - range.first) + 1).sum();
        served >= u32::from(SLOTS)
    }

    /// Of these keys the first that each primary serves.
    pub(super) fn one_key_each(&self, mut keys: impl Iterator<Item = String>) -> Vec<String> {
        let mut waiting = self.primaries();
        let mut found = Vec::new();
        while !waiting.is_empty()
            && let Some(key) = keys.next()
        {
            if self.owner(Slot::of(&key)).is_some_and(|owner| waiting.remove(owner)) {
                found.push(key);
            }
        }
        found
    }
}

/// Asks a node how it sees the cluster. `asked_host` stands for a node that names no host.
pub(super) async fn ask(
    connection: &mut MultiplexedConnection,
    asked_host: &str,
) -> RedisResult<View> {
    let (info, slots): (String, Value) = redis::pipe()
        .cmd("CLUSTER")
        .arg("INFO")
        .cmd("CLUSTER")
        .arg("SLOTS")
        .query_async(connection)
        .await?;
    let epoch = info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"));
    let epoch = epoch.and_then(|epoch| epoch.trim().parse().ok());
    let ranges = ranges(&slots, asked_host);
    match (epoch, ranges) {
        (Some(epoch), Some(ranges)) => Ok(View { epoch, ranges }),
        _ => Err(RedisError::from((ErrorKind::Parse, "CLUSTER INFO or SLOTS cannot be read"))),
    }
}

/// Reads `[[first, last, [host, port, …], replicas…], …]`; `None` when it is something else.
fn ranges(slots: &Value, asked_host: &str) -> Option<Vec<Range>> {
    let Value::Array(slots) = slots else { return None };
    slots.iter().map(|range| read_range(range, asked_host)).collect()
}

fn read_range(range: &Value, asked_host: &str) -> Option<Range> {
    let Value::Array(parts) = range else { return None };
    let [first, last, Value::Array(primary), ..] = parts.as_slice() else { return None };
    let [host, port, ..] = primary.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) if !host.is_empty() => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) if !host.is_empty() => host,
        Value::BulkString(_) | Value::SimpleString(_) | Value::Nil => asked_host,
        _ => return None,
    };
    let primary = NodeAddress { host: host.to_owned(), port: number(port)? };
    let range = Range { first: number(first)?, last: number(last)?, primary };
    (range.first <= range.last && range.last < SLOTS).then_some(range)
}

fn number(value: &Value) -> Option<u16> {
    let Value::Int(number) = value else { return None };
    u16::try_from(*number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        for (key, slot) in [
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{user1000}.following", 3_443),
            ("{user1000}.followers", 3_443),
            ("foo{}{bar}", 8_363),
            ("foo{{bar}}zap", 4_015),
            ("foo{bar}{zap}", 5_061),
        ] {
            assert_eq!(Slot::of(key), Slot(slot), "{key}");
        }
    }

    fn address(port: u16) -> NodeAddress {
        NodeAddress { host: "a".to_owned(), port }
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let (primary, replica) = (vec![host, Value::Int(port)], vec![Value::Nil, Value::Int(1)]);
        let parts = [Value::Int(first), Value::Int(last), Value::Array(primary)];
        Value::Array(parts.into_iter().chain([Value::Array(replica)]).collect())
    }

    #[test]
    fn the_primaries_are_read_and_a_missing_host_is_the_one_that_was_asked() {
        let named = |host: &str| Value::BulkString(host.as_bytes().to_vec());
        let told = Value::Array(vec![
            range(0, 5_460, named("a"), 1),
            range(5_461, 10_922, Value::Nil, 2),
            range(10_923, 16_383, named(""), 3),
        ]);
        let view = View { epoch: 1, ranges: ranges(&told, "a").expect("slots") };
        assert!(view.is_complete());
        assert_eq!(view.owner(Slot(0)), Some(&address(1)));
        assert_eq!(view.owner(Slot(5_461)), Some(&address(2)));
        assert_eq!(view.owner(Slot(16_383)), Some(&address(3)));
        assert_eq!(view.primaries(), BTreeSet::from([&address(1), &address(2), &address(3)]));
        for other in [Value::Nil, Value::Array(vec![range(0, 16_384, named("a"), 1)])] {
            assert_eq!(ranges(&other, "a"), None);
        }
    }

    #[test]
    fn a_gap_is_seen_and_every_primary_gets_a_key_of_its_own() {
        let range = |first, last, port| Range { first, last, primary: address(port) };
        let view = View { epoch: 1, ranges: vec![range(0, 99, 1), range(200, 16_383, 2)] };
        assert!(!view.is_complete());
        assert_eq!(view.owner(Slot(150)), None);
        let keys = view.one_key_each((0..).map(|number| format!("key-{number}")));
        let owners: BTreeSet<_> = keys.iter().map(|key| view.owner(Slot::of(key))).collect();
        assert_eq!(
            (keys.len(), owners),
            (2, BTreeSet::from([Some(&address(1)), Some(&address(2))]))
        );
    }

    #[test]
    fn a_redirection_names_a_node() {
        for (text, host, port) in [
            ("10.0.0.7:6379", "10.0.0.7", 6_379),
            ("[fd00::7]:1", "fd00::7", 1),
            (":2", "asked", 2),
        ] {
            let read = NodeAddress::parse(text, "asked").expect("an address");
            assert_eq!(read, NodeAddress { host: host.to_owned(), port }, "{text}");
        }
        assert_eq!(NodeAddress::parse("nowhere", "asked"), None);
    }
}
