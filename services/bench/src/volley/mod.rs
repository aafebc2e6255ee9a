//! A lean load generator: purchases over plain HTTP/1.1 on keep-alive connections, each by a buyer
//! of its own with a key of its own.
//!
//! It runs on one thread of its own with a runtime of its own, so that nothing else of this process
//! holds it up. A request is a prepared text in which fixed places are overwritten; of an answer it
//! reads the status and the length. What it takes of the processors is still part of every figure
//! over HTTP, on a machine of few cores a large part: figures are compared with others that were
//! taken by the same generator.

mod connection;
mod request;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use tokio::task::{LocalSet, spawn_blocking};

use self::connection::{Answer, Connection};
use self::request::Template;

/// What is fired, and how.
#[derive(Debug, Clone)]
pub struct Volley {
    pub address: SocketAddr,
    /// Bought in turn; their ids must be of the same length.
    pub items: Vec<String>,
    pub connections: usize,
    pub requests: u64,
    pub pace: Pace,
    /// In front of buyers and keys, so that volleys never share any. Four characters at most.
    pub tag: String,
}

/// When the next request goes out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// On each connection as soon as the last one is answered.
    Closed,
    /// So many a second, whether or not earlier ones are answered.
    PerSecond(f64),
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Fired {
    /// When the first request went out: connections were open by then.
    pub begun: Instant,
    /// From the first request to the last answer.
    pub took: Duration,
    /// From the first request to the last answer of 202.
    pub accepted_for: Duration,
    /// How many answers of each status there were.
    pub statuses: BTreeMap<u16, u64>,
    /// A body of each status, for people.
    pub samples: BTreeMap<u16, String>,
    /// How long those took that were answered with 202, in microseconds.
    pub accepted: Histogram<u64>,
    /// The same of all others.
    pub refused: Histogram<u64>,
}

/// The longest that a volley may take: nothing here is measured for longer.
const LONGEST: Duration = Duration::from_secs(120);

impl Fired {
    /// Answers of a status.
    pub fn count(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }

    /// Answers of a status per second.
    pub fn per_second(&self, status: u16) -> f64 {
        self.count(status) as f64 / self.took.as_secs_f64()
    }

    /// An error unless every answer had this status: a figure of something else would be a lie.
    pub fn all(self, status: u16) -> anyhow::Result<Self> {
        if self.statuses.keys().any(|found| *found != status) {
            bail!("not every answer was {status}: {:?}, such as {:?}", self.statuses, self.samples);
        }
        Ok(self)
    }
}

impl Volley {
    /// Fires everything and waits for every answer.
    pub async fn fire(self) -> anyhow::Result<Fired> {
        self.fire_for(LONGEST).await
    }

    /// Fires for at most so long, and waits for every answer to what was fired.
    pub async fn fire_for(self, limit: Duration) -> anyhow::Result<Fired> {
        spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            // The timer belongs to the runtime in which it is made.
            let firing = async { tokio::time::timeout(LONGEST, self.fire_here(limit)).await };
            let fired = LocalSet::new().block_on(&runtime, firing);
            fired.with_context(|| format!("not every request was answered within {LONGEST:?}"))?
        })
        .await?
    }

    async fn fire_here(self, limit: Duration) -> anyhow::Result<Fired> {
        let mut connections = Vec::with_capacity(self.connections);
        for _ in 0..self.connections {
            connections.push(Connection::open(self.address).await?);
        }
        let template = Template::new(self.address, &self.items, &self.tag)?;
        let fired = Fired::none();
        let closes = fired.begun + limit;
        let firing = Rc::new(Firing { volley: self, closes, next: 0.into(), fired: fired.into() });
        let tasks = connections.into_iter().map(|connection| {
            let (firing, template) = (Rc::clone(&firing), template.clone());
            tokio::task::spawn_local(async move { firing.one_by_one(connection, template).await })
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.await??;
        }
        let mut fired = firing.fired.replace(Fired::none());
        fired.took = fired.begun.elapsed();
        Ok(fired)
    }
}

/// A volley under way. Its connections share what came back: a set of histograms for each of them
/// would cost more than their requests.
struct Firing {
    volley: Volley,
    /// No request goes out any more.
    closes: Instant,
    next: Cell<u64>,
    fired: RefCell<Fired>,
}

impl Firing {
    /// One connection takes the next request whenever it is free.
    async fn one_by_one(
        &self,
        mut connection: Connection,
        mut template: Template,
    ) -> anyhow::Result<()> {
        let begun = self.fired.borrow().begun;
        loop {
            let number = self.next.get();
            if number >= self.volley.requests || Instant::now() >= self.closes {
                return Ok(());
            }
            self.next.set(number + 1);
            let sent = match self.volley.pace {
                Pace::Closed => Instant::now(),
                Pace::PerSecond(rate) => until_due(begun, number as f64 / rate).await,
            };
            let answer = connection.ask(template.of(number)).await?;
            self.fired.borrow_mut().note(&answer, sent.elapsed());
        }
    }
}

/// Waits until a request is due. One that is late because no connection was free has waited since
/// then, as a buyer would have; the timer's own lateness, up to a millisecond, is nobody's wait.
async fn until_due(begun: Instant, seconds: f64) -> Instant {
    let due = begun + Duration::from_secs_f64(seconds);
    if due <= Instant::now() {
        return due;
    }
    tokio::time::sleep_until(due.into()).await;
    Instant::now()
}

impl Fired {
    fn none() -> Self {
        let longest = LONGEST.as_micros() as u64;
        let empty = || Histogram::new_with_bounds(1, longest, 3).expect("good bounds");
        Self {
            begun: Instant::now(),
            took: Duration::ZERO,
            accepted_for: Duration::ZERO,
            statuses: BTreeMap::new(),
            samples: BTreeMap::new(),
            accepted: empty(),
            refused: empty(),
        }
    }

    fn note(&mut self, answer: &Answer<'_>, took: Duration) {
        *self.statuses.entry(answer.status).or_default() += 1;
        let sample = || String::from_utf8_lossy(answer.body).into_owned();
        self.samples.entry(answer.status).or_insert_with(sample);
        if answer.status == 202 {
            self.accepted_for = self.begun.elapsed();
        }
        let times = if answer.status == 202 { &mut self.accepted } else { &mut self.refused };
        times.saturating_record(took.as_micros() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_as_long_as_they_are() {
        let mut fired = Fired::none();
        for milliseconds in [1, 10, 500] {
            let answer = Answer { status: 202, body: b"{}" };
            fired.note(&answer, Duration::from_millis(milliseconds));
        }
        let most = fired.accepted.max();
        assert!((499_000..=501_000).contains(&most), "{most}");
        assert_eq!((fired.count(202), fired.count(409)), (3, 0));
    }
}
