//! `lock_acquire.lua`, `lock_renew.lua`, `lock_release.lua`, `lock_show.lua`: one step each.

use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use super::lock::LockRequest;
use super::reply::Words;
use super::script::Call;
use super::{Stock, StockError};
use crate::config::limits::{LOCK_PLACES, LOCK_PRESENCE};
use crate::domain::{ItemId, UnixMillis};

/// Who has an item's lock, or is the next to have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Host and process, as in `shop-1/4711`.
    pub holder: String,
    pub purpose: String,
    pub fence: u64,
    pub since: UnixMillis,
    /// Of its lease, unless it is renewed.
    pub left: Duration,
    /// How many wait for it.
    pub waiting: u32,
}

/// An item's lock at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockStanding {
    /// Nobody has it; the fence is the last one that was given.
    Free {
        fence: u64,
    },
    Held(LockHolder),
}

/// How an attempt to acquire ended.
pub(super) enum Acquired {
    Taken { fence: u64 },
    Busy(LockHolder),
}

/// Whether a token still has its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Kept,
    Lost,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, purpose, fence, since, left, waiting } = self;
        let left = left.as_secs_f64();
        write!(
            f,
            "{holder} has it for {purpose} since {since} (fence {fence}, {left:.1} s of its lease \
             left, {waiting} waiting)"
        )
    }
}

impl Stock {
    /// Who has an item's lock, and how many wait for it.
    pub async fn show_lock(&self, item: &ItemId) -> Result<LockStanding, StockError> {
        let call = self
            .scripts
            .lock_show
            .call()
            .key(self.keys.lock(item))
            .key(self.keys.fence(item))
            .key(self.keys.waiting(item));
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("lock_show", &reply);
        Ok(match words.word()? {
            "free" => LockStanding::Free { fence: words.parse()? },
            "held" => LockStanding::Held(holder(&mut words)?),
            _ => return Err(words.malformed()),
        })
    }

    /// Takes the lock, or a place in the queue for it, which is given up unless the caller `stays`.
    pub(super) fn lock_acquire(
        &self,
        item: &ItemId,
        token: Uuid,
        request: &LockRequest<'_>,
        (own_name, stays): (&str, bool),
    ) -> Call<'_> {
        let presence = if stays { LOCK_PRESENCE } else { Duration::ZERO };
        self.scripts
            .lock_acquire
            .call()
            .key(self.keys.lock(item))
            .key(self.keys.fence(item))
            .key(self.keys.waiting(item))
            .arg(token)
            .arg(request.lease.as_millis())
            .arg(request.floor)
            .arg(own_name)
            .arg(one_word(request.purpose))
            .arg(presence.as_millis())
            .arg(LOCK_PLACES)
    }

    pub(super) async fn lock_renew(
        &self,
        item: &ItemId,
        token: Uuid,
        lease: Duration,
    ) -> Result<Kept, StockError> {
        let call = self
            .scripts
            .lock_renew
            .call()
            .key(self.keys.lock(item))
            .arg(token)
            .arg(lease.as_millis());
        kept("lock_renew", &self.connection.run::<String>(call).await?)
    }

    pub(super) async fn lock_release(
        &self,
        item: &ItemId,
        token: Uuid,
    ) -> Result<Kept, StockError> {
        let call = self.scripts.lock_release.call().key(self.keys.lock(item)).arg(token);
        kept("lock_release", &self.connection.run::<String>(call).await?)
    }
}

pub(super) fn acquired(reply: &str) -> Result<Acquired, StockError> {
    let mut words = Words::of("lock_acquire", reply);
    Ok(match words.word()? {
        "taken" => Acquired::Taken { fence: words.parse()? },
        "busy" => Acquired::Busy(holder(&mut words)?),
        _ => return Err(words.malformed()),
    })
}

fn kept(script: &'static str, reply: &str) -> Result<Kept, StockError> {
    match reply {
        "renewed" | "released" => Ok(Kept::Kept),
        "lost" => Ok(Kept::Lost),
        _ => Err(StockError::malformed(script, reply)),
    }
}

fn holder(words: &mut Words<'_>) -> Result<LockHolder, StockError> {
    Ok(LockHolder {
        fence: words.parse()?,
        since: UnixMillis(words.parse()?),
        left: Duration::from_millis(words.parse()?),
        waiting: words.parse()?,
        holder: words.word()?.to_owned(),
        purpose: words.word()?.to_owned(),
    })
}

/// What fits into a reply: visible ASCII without `|`, which separates, 64 letters at most.
pub(super) fn one_word(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_graphic() && c != '|' { c } else { '-' };
    let word: String = text.chars().take(64).map(fits).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_becomes_one_word() {
        assert_eq!(one_word("warm up"), "warm-up");
        assert_eq!(one_word("a|b\nç"), "a-b--");
        assert_eq!(one_word(""), "-");
        assert_eq!(one_word(&"x".repeat(99)).len(), 64);
    }
}
