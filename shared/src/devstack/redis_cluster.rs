//! A private Redis Cluster: three primaries, each for a third of the keys, and a replica of each.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::home::write_private;
use super::redis_cluster_seen::all;
use super::redis_member::{Member, MemberRecipe};
use super::{Backend, Recipe, StackError};

pub(super) const PRIMARIES: usize = 3;
pub(super) const MEMBERS: usize = 2 * PRIMARIES;
pub(super) const SLOTS: usize = 16_384;

/// Members that find each other need a second or two, and several times that beside a build.
const FORMED_BOUND: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Six servers. Dropping it kills them; see [`RedisCluster::stop`] for the polite way.
pub struct RedisCluster {
    pub(super) members: Vec<Member>,
}

impl RedisCluster {
    /// Returns when every slot is served and every primary has a replica that follows it. `dir` is
    /// for one cluster, once.
    pub fn start(dir: &Path) -> Result<Self, StackError> {
        let password = uuid::Uuid::new_v4().simple().to_string();
        let started = thread::scope(|scope| {
            let start = |number| {
                let (dir, password) = (dir.join(format!("member-{number}")), &password);
                scope.spawn(move || {
                    fs::create_dir_all(&dir).map_err(StackError::file("creating", &dir))?;
                    // Members and clients know all members by one password.
                    write_private(&dir.join("password"), password)?;
                    Member::start(&dir)
                })
            };
            let starting: Vec<_> = (0..MEMBERS).map(start).collect();
            starting.into_iter().map(|one| one.join().expect("no panic while starting")).collect()
        });
        let cluster = Self { members: Result::from_iter::<Vec<_>>(started)? };
        cluster.form()?;
        Ok(cluster)
    }

    /// The URLs of all members, separated by commas, with their password.
    pub fn urls(&self) -> String {
        self.members.iter().map(Backend::url).collect::<Vec<_>>().join(",")
    }

    pub fn member(&self, number: usize) -> &Member {
        &self.members[number]
    }

    /// The reply of a member to one inline command: a line without its mark, or the text of a bulk
    /// reply.
    pub fn ask(&self, number: usize, command: &str) -> Result<String, StackError> {
        self.members[number].recipe.ask(command).map_err(|error| StackError::Disobeyed {
            backend: MemberRecipe::NAME,
            told: "answer",
            reason: format!("{command}: {error}"),
        })
    }

    /// Kills a member at once, as a crash would.
    pub fn kill(&mut self, number: usize) -> Result<(), StackError> {
        self.members[number].kill()
    }

    /// Starts a member again that was killed: with its data, as a replica of whoever took its place.
    pub fn restart(&mut self, number: usize) -> Result<(), StackError> {
        self.members[number].restart()
    }

    /// Freezes a member: connections stay open, and nothing answers.
    pub fn pause(&self, number: usize) {
        self.members[number].pause();
    }

    pub fn resume(&self, number: usize) {
        self.members[number].resume();
    }

    /// Waits until another member serves a key than this one, which was killed or paused, and all
    /// that work agree. Returns the number of the other.
    pub fn until_replaced(&self, lost: usize, key: &str) -> Result<usize, StackError> {
        let mut other = lost;
        self.until("served again by another member", || {
            other = self.seen_owner_of(key)?.unwrap_or(lost);
            Ok(other != lost && self.is_ok(Some(lost))?)
        })?;
        Ok(other)
    }

    /// Waits until the replica of a member has everything that the member has taken until now.
    pub fn until_replicated(&self, leader: usize) -> Result<(), StackError> {
        let offset = |number, name: &str| -> Result<Option<u64>, StackError> {
            let info = self.ask(number, "INFO replication")?;
            let offset = info.lines().find_map(|line| line.strip_prefix(name));
            Ok(offset.and_then(|offset| offset.trim().parse().ok()))
        };
        let taken = offset(leader, "master_repl_offset:")?;
        self.until("replicated", || {
            let Some(replica) = self.replica_of(leader)? else { return Ok(false) };
            Ok(offset(replica, "slave_repl_offset:")? >= taken)
        })
    }

    /// Waits until every slot is served and every primary has a replica that follows it.
    pub fn until_whole(&self) -> Result<(), StackError> {
        self.until("whole", || {
            let seen = self.seen()?;
            let healthy = || seen.iter().filter(|one| !one.is_failing);
            let served = healthy().filter(|one| one.is_primary).flat_map(|one| &one.slots);
            let served: usize = served.map(ExactSizeIterator::len).sum();
            Ok(healthy().count() == MEMBERS
                && served == SLOTS
                && self.is_ok(None)?
                && self.all_follow()?)
        })
    }

    /// Asks every member to end, and kills what has not ended within a bound.
    pub fn stop(mut self) -> Result<(), StackError> {
        thread::scope(|scope| {
            let stopping: Vec<_> =
                self.members.iter_mut().map(|member| scope.spawn(|| member.stop())).collect();
            let stopped = stopping.into_iter().map(|one| one.join().expect("no panic"));
            stopped.collect::<Result<Vec<_>, _>>().map(drop)
        })
    }

    fn form(&self) -> Result<(), StackError> {
        let mut ids = Vec::new();
        for number in 0..MEMBERS {
            ids.push(self.ask(number, "CLUSTER MYID")?);
            // Different from the beginning, so that nobody has to settle who is whom.
            self.tell(number, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1))?;
        }
        for number in 0..PRIMARIES {
            let (first, end) = (number * SLOTS / PRIMARIES, (number + 1) * SLOTS / PRIMARIES);
            self.tell(number, &format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1))?;
        }
        for member in &self.members[1..] {
            let MemberRecipe { port, bus, .. } = &member.recipe;
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", port.number(), bus.number());
            self.tell(0, &meet)?;
        }
        self.until("known to all its members", || {
            let knows_all = |number| Ok(self.seen_by(number)?.len() == MEMBERS);
            all(0..MEMBERS, knows_all)
        })?;
        for number in PRIMARIES..MEMBERS {
            self.tell(number, &format!("CLUSTER REPLICATE {}", ids[number - PRIMARIES]))?;
        }
        self.until_whole()
    }

    /// A command that is answered with OK.
    pub(super) fn tell(&self, number: usize, command: &str) -> Result<(), StackError> {
        match self.ask(number, command)?.as_str() {
            "OK" => Ok(()),
            reply => Err(StackError::Disobeyed {
                backend: MemberRecipe::NAME,
                told: "form a cluster",
                reason: format!(
                    "{reply} to {}",
                    command.split(" AUTH ").next().unwrap_or_default()
                ),
            }),
        }
    }

    /// A member that does not answer yet is waited for.
    pub(super) fn until(
        &self,
        awaited: &str,
        mut is_so: impl FnMut() -> Result<bool, StackError>,
    ) -> Result<(), StackError> {
        let deadline = Instant::now() + FORMED_BOUND;
        loop {
            let last = match is_so() {
                Ok(true) => return Ok(()),
                Ok(false) => self.seen().map(|seen| format!("{seen:?}")).unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= deadline {
                let seconds = FORMED_BOUND.as_secs();
                return Err(StackError::NotFormed { awaited: awaited.to_owned(), seconds, last });
            }
            thread::sleep(POLL);
        }
    }
}
