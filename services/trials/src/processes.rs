//! The services as processes of their own, each behind wires that can be tampered with.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::config::Config;
use shared::devstack::Companion;
use tokio::task::spawn_blocking;

use crate::faults::{Backend, FLEET, Member};
use crate::line::{Service, free_address};
use crate::proxy::Proxy;
use crate::until::until;

/// Longer than a service may take to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(25);

/// What `abort` ends a process with, as a crash point does.
const SIGABRT: i32 = 6;

/// How to run the services of a round.
pub struct Manning<'a> {
    /// The binary `trial`.
    pub program: &'a Path,
    /// Where each process gets a directory of its own.
    pub dir: &'a Path,
    pub first_look: Duration,
    /// A world; its URLs are where the wires lead.
    pub config: &'a Config,
}

/// Every process of a round.
pub struct Fleet {
    members: Vec<Arc<Process>>,
}

/// One of them. Its methods block, as processes do; see [`Process::does`].
pub struct Process {
    pub member: Member,
    /// Where it answers, if it is an ingress.
    pub address: SocketAddr,
    redis: Proxy,
    rabbitmq: Proxy,
    ledger: Proxy,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
    dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Companion>,
    /// It was started with a crash point.
    may_crash: bool,
    /// What it did and should not have done.
    misdeeds: Vec<String>,
}

impl Fleet {
    /// Everybody, not started yet.
    pub async fn man(manning: Manning<'_>) -> Self {
        let mut members = Vec::new();
        for member in FLEET {
            members.push(Arc::new(Process::of(member, &manning).await));
        }
        Self { members }
    }

    pub fn all(&self) -> &[Arc<Process>] {
        &self.members
    }

    pub fn find(&self, member: Member) -> Arc<Process> {
        let found = self.members.iter().find(|process| process.member == member);
        Arc::clone(found.expect("a member of the fleet"))
    }

    /// Where buyers ask.
    pub fn ingresses(&self) -> Vec<SocketAddr> {
        let ingress = |process: &&Arc<Process>| process.member.service == Service::Ingress;
        self.members.iter().filter(ingress).map(|process| process.address).collect()
    }

    /// Does the same to everybody, side by side.
    pub async fn every(&self, act: impl Fn(&Process) + Clone + Send + 'static) {
        let acts: Vec<_> = self.members.iter().map(|process| process.does(act.clone())).collect();
        futures_util::future::join_all(acts).await;
    }

    /// What anybody did and should not have done, and what they say went wrong.
    pub fn misdeeds(&self) -> Vec<String> {
        self.members.iter().flat_map(|process| process.misdeeds()).collect()
    }
}

impl Process {
    /// One process that stands alone.
    pub async fn alone(service: Service, manning: Manning<'_>) -> Arc<Self> {
        Arc::new(Self::of(Member::first(service), &manning).await)
    }

    /// Waits until it has died at its crash point.
    pub async fn until_dead(self: &Arc<Self>) {
        until("it dies at its crash point", async || {
            self.does(|process| process.has_ended()).await.then_some(())
        })
        .await;
    }

    async fn of(member: Member, manning: &Manning<'_>) -> Self {
        let Manning { program, dir, first_look, config } = manning;
        let (redis, rabbitmq, ledger) = (
            Proxy::to(&config.redis.url).await,
            Proxy::to(&config.rabbitmq.url).await,
            Proxy::to(&config.ledger.url).await,
        );
        let address = free_address();
        let behind = |url: &shared::config::BackendUrl, wire: &Proxy| {
            url.with_address(wire.address()).expose().to_owned()
        };
        let variables = vec![
            ("LASTUNIT_NAMESPACE", config.namespace.to_string()),
            ("LASTUNIT_HTTP_LISTEN", address.to_string()),
            ("LASTUNIT_REDIS_URL", behind(config.redis.url.first(), &redis)),
            ("LASTUNIT_RABBITMQ_URL", behind(&config.rabbitmq.url, &rabbitmq)),
            ("LASTUNIT_RABBITMQ_PARTITIONS", config.rabbitmq.partitions.to_string()),
            ("LASTUNIT_LEDGER_URL", behind(&config.ledger.url, &ledger)),
        ];
        let first_look = first_look.as_millis().to_string();
        let arguments = ["service", member.service.name(), "--first-look-ms", &first_look];
        Self {
            member,
            address,
            redis,
            rabbitmq,
            ledger,
            program: program.to_path_buf(),
            arguments: arguments.map(str::to_owned).to_vec(),
            variables,
            dir: dir.join(member.name),
            state: Mutex::default(),
        }
    }

    pub fn wire(&self, backend: Backend) -> &Proxy {
        match backend {
            Backend::Redis => &self.redis,
            Backend::RabbitMq => &self.rabbitmq,
            Backend::Ledger => &self.ledger,
        }
    }

    /// Does something that blocks, on a thread for such things.
    pub async fn does<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let process = Arc::clone(self);
        spawn_blocking(move || act(&process)).await.expect("no panic around a process")
    }

    /// Starts it, unless it runs.
    pub fn start(&self, crash_at: Option<String>) {
        self.look();
        let mut state = self.state();
        if state.running.is_some() {
            return;
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(self.made_dir());
        // Only what is said here.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LASTUNIT_")) {
            command.env_remove(name);
        }
        command.env_remove("CRASH_AT").envs(self.variables.clone());
        state.may_crash = crash_at.is_some();
        command.envs(crash_at.map(|point| ("CRASH_AT", point)));
        match Companion::start(self.member.name, &self.dir, command) {
            Ok(companion) => state.running = Some(companion),
            Err(error) => state.misdeeds.push(format!("cannot start: {error}")),
        }
    }

    /// Does it not run, or not any more?
    pub fn has_ended(&self) -> bool {
        self.look();
        self.state().running.is_none()
    }

    /// kill -9.
    pub fn kill(&self) {
        self.look();
        let mut state = self.state();
        if let Some(running) = state.running.take()
            && let Err(error) = running.kill()
        {
            state.misdeeds.push(format!("cannot be killed: {error}"));
        }
    }

    pub fn freeze(&self) {
        self.state().running.iter().for_each(Companion::pause);
    }

    pub fn thaw(&self) {
        self.state().running.iter().for_each(Companion::resume);
    }

    /// SIGTERM; it must end well and in time.
    pub fn stop(&self) {
        self.look();
        let mut state = self.state();
        let Some(running) = state.running.take() else { return };
        // Whoever is frozen with all consumers would never hear of it, and is out of reach now of
        // the one who thaws them.
        running.resume();
        match running.stop(STOPPED_WITHIN) {
            Ok(Some(status)) if status.success() || state.may_be(status) => {}
            Ok(ended) => state.misdeeds.push(format!("did not stop in good order: {ended:?}")),
            Err(error) => state.misdeeds.push(format!("cannot be stopped: {error}")),
        }
    }

    /// As it is when nothing is wrong: running, without a crash point, on wires that work.
    pub fn heal(&self) {
        for backend in [Backend::Redis, Backend::RabbitMq, Backend::Ledger] {
            self.wire(backend).recover();
        }
        self.thaw();
        if self.state().may_crash {
            self.kill();
        }
        self.start(None);
    }

    /// Notes it when the process has ended by itself, which only a crash point may make it do.
    pub fn look(&self) {
        let mut state = self.state();
        let Some(status) = state.running.as_mut().and_then(Companion::exit_status) else { return };
        state.running = None;
        if !state.may_be(status) {
            state.misdeeds.push(format!("ended by itself: {status}"));
        }
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        let log = self.dir.join(format!("{}.log", self.member.name));
        String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
    }

    fn misdeeds(&self) -> Vec<String> {
        let log = self.log();
        let complaints =
            log.lines().filter(|line| line.contains(" ERROR ") || line.contains("panicked at"));
        let done = self.state().misdeeds.clone();
        let all = done.into_iter().chain(complaints.map(|line| format!("says: {line}")));
        all.map(|misdeed| format!("{} {misdeed}", self.member.name)).collect()
    }

    fn made_dir(&self) -> &Path {
        // Should this fail, starting says so.
        let _ = std::fs::create_dir_all(&self.dir);
        &self.dir
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_be(&self, status: ExitStatus) -> bool {
        self.may_crash && status.signal() == Some(SIGABRT)
    }
}
