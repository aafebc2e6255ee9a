//! What can go wrong between us and Redis, and what is known afterwards.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::slots::NodeAddress;

use crate::domain::ItemId;

/// A call to Redis that did not give a usable reply.
#[derive(Debug, thiserror::Error)]
pub enum StockError {
    /// Nothing was sent.
    #[error("cannot reach Redis at {address}: {reason}")]
    Unreachable { address: String, reason: String },
    /// The script may have run, or may still run.
    #[error("no reply from Redis at {address} to {script}: it may have run ({source})")]
    Unknown { address: String, script: &'static str, source: RedisError },
    /// Redis refused to run the script, for example because it is full or still loading.
    #[error("Redis at {address} refused {script}: {source}")]
    Refused { address: String, script: &'static str, source: RedisError },
    /// The reply is not one that this release knows.
    #[error("Redis answered {script} with {reply:?}, which this release does not understand")]
    Malformed { script: &'static str, reply: String },
    #[error("the layout of {item} keeps changing while its buckets are asked; ask again")]
    Unsteady { item: ItemId },
    #[error("redis.url cannot be used: {0}")]
    InvalidUrl(RedisError),
}

/// What a server that refused a script means by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The slot is this one's.
    Moved(NodeAddress),
    /// The slot is just moving to this one, which has these keys already.
    Ask(NodeAddress),
    /// This server serves nobody, or not any more.
    OfTheNode,
    /// Here is the place for the call, and it is not taken: the server is full, or the keys are
    /// just moving.
    OfTheCall,
}

impl StockError {
    /// True when the script may have run: only asking again with the same ids can tell.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Malformed { .. })
    }

    /// Why a server did not run a script, if it said so. All of these are said before the script
    /// begins; `asked_host` is the server's, for where it names none.
    pub(super) fn refusal(&self, asked_host: &str) -> Option<Refusal> {
        let Self::Refused { source, .. } = self else { return None };
        let named = || NodeAddress::parse(source.redirect_node()?.0, asked_host);
        Some(match source.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => {
                named().map_or(Refusal::OfTheNode, Refusal::Moved)
            }
            ErrorKind::Server(ServerErrorKind::Ask) => {
                named().map_or(Refusal::OfTheNode, Refusal::Ask)
            }
            ErrorKind::Server(
                ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly
                | ServerErrorKind::BusyLoading,
            ) => Refusal::OfTheNode,
            _ => Refusal::OfTheCall,
        })
    }

    pub(super) fn malformed(script: &'static str, reply: &str) -> Self {
        Self::Malformed { script, reply: reply.to_owned() }
    }

    /// Sorts a failed call: errors that the server itself reports are refusals, everything else
    /// happened on the way.
    pub(super) fn of_call(address: &str, script: &'static str, source: RedisError) -> Self {
        let address = address.to_owned();
        match source.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => {
                Self::Refused { address, script, source }
            }
            _ => Self::Unknown { address, script, source },
        }
    }
}
