//! A private Redis Cluster: three primaries, each for a third of the keys, and a replica of each.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::home::write_private;
use super::redis_member::{Member, MemberRecipe};
use super::{Backend, Recipe, StackError};

const PRIMARIES: usize = 3;
const MEMBERS: usize = 2 * PRIMARIES;
const SLOTS: usize = 16_384;

/// Members that find each other need a second or two, and several times that beside a build.
const FORMED_BOUND: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Six servers. Dropping it kills them; see [`RedisCluster::stop`] for the polite way.
pub struct RedisCluster {
    members: Vec<Member>,
}

/// A member, as it is seen by one that works.
#[derive(Debug, Clone)]
struct Seen {
    id: String,
    port: u16,
    is_primary: bool,
    /// What a replica follows.
    leader: Option<String>,
    is_failing: bool,
    slots: Vec<Range<usize>>,
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

    /// Lets a slot move from one primary to another, and leaves it half-way: what is not there yet
    /// is asked for at the other.
    pub fn begin_to_move(&self, key: &str, to: usize) -> Result<(), StackError> {
        let from = self.owner_of(key)?;
        let slot = self.ask(from, &format!("CLUSTER KEYSLOT {key}"))?;
        let (from_id, to_id) = (self.ask(from, "CLUSTER MYID")?, self.ask(to, "CLUSTER MYID")?);
        self.tell(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"))?;
        self.tell(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"))
    }

    /// Ends what [`begin_to_move`](Self::begin_to_move) has begun: all keys of the slot move with it.
    pub fn finish_to_move(&self, key: &str, to: usize) -> Result<(), StackError> {
        let from = self.owner_of(key)?;
        let slot = self.ask(from, &format!("CLUSTER KEYSLOT {key}"))?;
        let to_id = self.ask(to, "CLUSTER MYID")?;
        let (port, password) = (self.members[to].port(), self.password());
        loop {
            let reply = self.ask(from, &format!("CLUSTER GETKEYSINSLOT {slot} 100"))?;
            // `*n`, then `$length` and the key, each on a line.
            let keys: Vec<_> = reply.lines().skip(2).step_by(2).collect();
            if keys.is_empty() {
                break;
            }
            let keys = keys.join(" ");
            let migrate =
                format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 AUTH {password} KEYS {keys}");
            self.tell(from, &migrate)?;
        }
        for member in [to, from] {
            self.tell(member, &format!("CLUSTER SETSLOT {slot} NODE {to_id}"))?;
        }
        Ok(())
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
    fn tell(&self, number: usize, command: &str) -> Result<(), StackError> {
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

    fn password(&self) -> String {
        let url = self.members[0].url();
        url.split([':', '@']).nth(2).unwrap_or_default().to_owned()
    }

    /// Whether all members but one see every slot served.
    fn is_ok(&self, but: Option<usize>) -> Result<bool, StackError> {
        all((0..MEMBERS).filter(|number| Some(*number) != but), |number| {
            Ok(self.ask(number, "CLUSTER INFO")?.starts_with("cluster_state:ok"))
        })
    }

    fn all_follow(&self) -> Result<bool, StackError> {
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

    fn seen_owner_of(&self, key: &str) -> Result<Option<usize>, StackError> {
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
    fn seen(&self) -> Result<Vec<Seen>, StackError> {
        let mut last = self.seen_by(0);
        for number in self.running() {
            last = self.seen_by(number);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn seen_by(&self, number: usize) -> Result<Vec<Seen>, StackError> {
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

    /// A member that does not answer yet is waited for.
    fn until(
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

fn all(
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
