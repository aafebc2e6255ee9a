//! What all backends have in common: start and wait until it answers, kill, stop, restart, pause.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::home::Record;
use super::{Home, Process, StackError};

/// RabbitMQ needs 3 s of two idle cores, and several times that beside a build.
const START_BOUND: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(15);
/// RabbitMQ closes its queues and PostgreSQL writes a checkpoint: about 1 s when little is going on.
const STOP_GRACE: Duration = Duration::from_secs(20);
const LOG_TAIL_LINES: usize = 20;

/// What is particular to one backend.
pub trait Recipe: Sized + Send {
    /// Its name in messages, and of its folder in a stack.
    const NAME: &'static str;

    /// Everything that is done once per owner: programs, ports, credentials, data files.
    fn prepare(home: &Home) -> Result<Self, StackError>;

    /// Spawns what belongs to the backend, in order. Pushed one by one, so that a failure in the
    /// middle still ends the earlier ones.
    fn launch(&self, home: &mut Home, processes: &mut Vec<Process>) -> Result<(), StackError>;

    /// Does it really answer? The error says what happened instead.
    fn answers(&self) -> Result<(), String>;

    /// With credentials.
    fn url(&self) -> String;

    fn port(&self) -> u16;
}

/// One private backend. Dropping it kills its processes; see [`Backend::stop`] for the polite way.
pub struct Backend<R: Recipe> {
    // The order of the fields is the order of dropping: first the processes, the home's lock last.
    processes: Vec<Process>,
    pub(super) recipe: R,
    home: Home,
}

impl<R: Recipe> Backend<R> {
    /// Data, port and credentials in `dir` are used again when they exist.
    pub fn start(dir: &Path) -> Result<Self, StackError> {
        let home = Home::open(R::NAME, dir)?;
        let recipe = R::prepare(&home)?;
        let mut backend = Self { processes: Vec::new(), recipe, home };
        backend.launch()?;
        Ok(backend)
    }

    /// Starts it again after [`kill`](Self::kill) or [`stop`](Self::stop): same port, same data,
    /// same credentials. One that still runs is stopped first.
    pub fn restart(&mut self) -> Result<(), StackError> {
        self.stop()?;
        self.launch()
    }

    /// Ends all its processes at once, as a crash or a power cut would.
    pub fn kill(&mut self) -> Result<(), StackError> {
        for process in self.processes.iter_mut().rev() {
            process.kill()?;
        }
        self.processes.clear();
        self.home.forget()
    }

    /// Asks it to end in order, and kills what has not ended within a bound.
    pub fn stop(&mut self) -> Result<(), StackError> {
        for process in self.processes.iter_mut().rev() {
            process.stop(STOP_GRACE)?;
        }
        self.processes.clear();
        self.home.forget()
    }

    /// Freezes all its processes: connections stay open, and nothing answers.
    pub fn pause(&self) {
        self.processes.iter().rev().for_each(Process::pause);
    }

    pub fn resume(&self) {
        self.processes.iter().for_each(Process::resume);
    }

    pub fn url(&self) -> String {
        self.recipe.url()
    }

    pub fn port(&self) -> u16 {
        self.recipe.port()
    }

    /// The processes this one started itself; their children are not listed.
    pub fn pids(&self) -> Vec<i32> {
        self.processes.iter().map(|process| process.leader().identity.pid).collect()
    }

    /// Lets it run on after this process ends. [`Stack::down`](super::Stack::down) finds it again.
    pub(super) fn detach(mut self) -> Result<(), StackError> {
        self.home.mark_detached()?;
        self.processes.iter_mut().for_each(Process::detach);
        Ok(())
    }

    /// Stops what runs in `dir` without an owner; returns the names of what really ran.
    pub(super) fn down(dir: &Path) -> Result<Vec<String>, StackError> {
        if !dir.is_dir() {
            return Ok(Vec::new());
        }
        let mut home = Home::lock(R::NAME, dir)?;
        let stopped = home.left_behind().stop()?;
        home.forget()?;
        Ok(stopped)
    }

    /// Does everything run that was left running in `dir`?
    pub(super) fn runs_detached(dir: &Path) -> bool {
        let record = Record::read(dir);
        let alive = record.alive().count();
        record.detached && alive > 0 && alive == record.processes.len()
    }

    fn launch(&mut self) -> Result<(), StackError> {
        self.recipe.launch(&mut self.home, &mut self.processes)?;
        let deadline = Instant::now() + START_BOUND;
        loop {
            let Err(last) = self.recipe.answers() else { return Ok(()) };
            for process in &mut self.processes {
                if let Some(status) = process.exit_status() {
                    let (log, tail) = (process.log().clone(), tail_of(process.log()));
                    return Err(StackError::Ended { backend: R::NAME, status, log, tail });
                }
            }
            if Instant::now() >= deadline {
                // The last process is the backend itself; those before it are its helpers.
                let log = self.processes.last().map(|p| p.log().clone()).unwrap_or_default();
                let (seconds, tail) = (START_BOUND.as_secs(), tail_of(&log));
                return Err(StackError::Silent { backend: R::NAME, seconds, last, log, tail });
            }
            thread::sleep(POLL);
        }
    }
}

fn tail_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
