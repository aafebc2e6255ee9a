//! The local stack starts what it says, and never leaves anything behind.
//!
//! Most tests use Redis alone, which starts in a few milliseconds; what holds for one backend's
//! processes holds for all. The tests speak plain sockets, so that no client library stands between
//! them and what they look at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use shared::devstack::{Down, Postgres, RabbitMq, Redis, RedisCluster, Stack, StackError};
use uuid::Uuid;

#[test]
fn stack_starts_and_answers_as_this_user() {
    let home = Scratch::new();
    let stack = Stack::start(&home.0, &|line| println!("{line}")).unwrap();

    assert_eq!(ask_redis(&stack.redis, "SET greeting hello"), "+OK\r\n");
    assert_eq!(
        ask_redis(&stack.redis, "CONFIG GET appendonly"),
        "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n"
    );
    assert!(stack.rabbitmq.ctl(&["list_users"]).unwrap().contains("lastunit"));
    assert!(is_open(stack.postgres.port()));
    let endpoints = stack.endpoints();
    assert_eq!(endpoints.redis_url, stack.redis.url());
    assert_eq!(endpoints.rabbitmq_url, stack.rabbitmq.url());
    assert_eq!(endpoints.ledger_url, stack.postgres.url());
}

#[test]
fn stop_leaves_no_process_behind() {
    let home = Scratch::new();
    let stack = Stack::start(&home.0, &|_| ()).unwrap();
    let ports = [stack.redis.port(), stack.rabbitmq.port(), stack.postgres.port()];
    assert!(processes_in(&home.0) > 3);

    stack.stop().unwrap();

    assert_eq!(processes_in(&home.0), 0);
    assert!(ports.iter().all(|port| !is_open(*port)));
}

#[test]
fn two_stacks_run_side_by_side() {
    let (one, two) = (Scratch::new(), Scratch::new());
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| Stack::start(&one.0, &|_| ()).unwrap());
        let second = scope.spawn(|| Stack::start(&two.0, &|_| ()).unwrap());
        (first.join().unwrap(), second.join().unwrap())
    });
    first.rabbitmq.ctl(&["add_vhost", "mine"]).unwrap();

    assert!(!second.rabbitmq.ctl(&["list_vhosts"]).unwrap().contains("mine"));
    drop(first);
    assert!(second.rabbitmq.ctl(&["list_vhosts"]).is_ok());
    assert_eq!(ask_redis(&second.redis, "PING"), "+PONG\r\n");
}

#[test]
fn killed_redis_comes_back_on_the_same_port_with_its_data() {
    let home = Scratch::new();
    let mut redis = Redis::start(&home.0).unwrap();
    let url = redis.url();
    ask_redis(&redis, "SET stock 7");

    redis.kill().unwrap();
    assert!(!is_open(redis.port()));
    redis.restart().unwrap();

    assert_eq!(redis.url(), url);
    assert_eq!(ask_redis(&redis, "GET stock"), "$1\r\n7\r\n");
}

#[test]
fn a_redis_cluster_serves_every_slot_from_three_primaries_with_a_replica_each() {
    let home = Scratch::new();
    let cluster = RedisCluster::start(&home.0).unwrap();
    assert_eq!(cluster.urls().split(',').count(), 6);
    let owners: BTreeSet<_> =
        (0..30).map(|key| cluster.owner_of(&format!("key-{key}")).unwrap()).collect();
    assert_eq!(owners.len(), 3, "{owners:?}");
    let replicas: BTreeSet<_> =
        owners.iter().map(|owner| cluster.replica_of(*owner).unwrap().unwrap()).collect();
    assert_eq!(replicas.union(&owners).count(), 6, "{owners:?} {replicas:?}");
    let [one, other] = [owners.first().unwrap(), owners.last().unwrap()];
    let key = (0..).map(|n| n.to_string()).find(|key| cluster.owner_of(key).unwrap() == *one);
    let key = key.unwrap();
    assert_eq!(cluster.ask(*one, &format!("SET {key} 7")).unwrap(), "OK");
    assert_eq!(cluster.ask(*one, &format!("GET {key}")).unwrap(), "7");
    assert!(cluster.ask(*other, &format!("GET {key}")).unwrap().starts_with("-MOVED"));

    cluster.begin_to_move(&key, *other).unwrap();
    assert_eq!(cluster.ask(*one, &format!("GET {key}")).unwrap(), "7", "it is not moved yet");
    cluster.finish_to_move(&key, *other).unwrap();
    assert_eq!(cluster.ask(*other, &format!("GET {key}")).unwrap(), "7");

    cluster.stop().unwrap();
    assert_eq!(processes_in(&home.0), 0);
}

#[test]
fn a_killed_primary_is_replaced_by_its_replica_and_comes_back_behind_it() {
    let home = Scratch::new();
    let mut cluster = RedisCluster::start(&home.0).unwrap();
    let owner = cluster.owner_of("stock").unwrap();
    let replica = cluster.replica_of(owner).unwrap().unwrap();
    cluster.ask(owner, "SET stock 7").unwrap();
    cluster.until_replicated(owner).unwrap();

    cluster.kill(owner).unwrap();
    assert_eq!(cluster.until_replaced(owner, "stock").unwrap(), replica);
    assert_eq!(cluster.ask(replica, "GET stock").unwrap(), "7");

    cluster.restart(owner).unwrap();
    cluster.until_whole().unwrap();
    assert_eq!(cluster.owner_of("stock").unwrap(), replica);
    assert_eq!(cluster.replica_of(replica).unwrap(), Some(owner));
    drop(cluster);
    assert_eq!(processes_in(&home.0), 0);
}

#[test]
fn killed_rabbitmq_comes_back_on_the_same_port_with_its_data() {
    let home = Scratch::new();
    let mut rabbitmq = RabbitMq::start(&home.0).unwrap();
    let url = rabbitmq.url();
    rabbitmq.ctl(&["add_vhost", "kept"]).unwrap();

    rabbitmq.kill().unwrap();
    assert_eq!(processes_in(&home.0), 0);
    rabbitmq.restart().unwrap();

    assert_eq!(rabbitmq.url(), url);
    assert!(rabbitmq.ctl(&["list_vhosts"]).unwrap().contains("kept"));
}

#[test]
fn killed_postgres_comes_back_on_the_same_port() {
    let home = Scratch::new();
    let mut postgres = Postgres::start(&home.0).unwrap();
    let url = postgres.url();

    postgres.kill().unwrap();
    assert_eq!(processes_in(&home.0), 0);
    postgres.restart().unwrap();

    assert_eq!(postgres.url(), url);
    assert!(is_open(postgres.port()));
}

#[test]
fn paused_redis_answers_only_after_it_is_resumed() {
    let home = Scratch::new();
    let redis = Redis::start(&home.0).unwrap();
    redis.pause();
    // The kernel still accepts the connection; only the process is frozen.
    let mut connection = connect(&redis);
    connection.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(connection.read(&mut [0; 16]).is_err());

    redis.resume();

    connection.set_read_timeout(Some(BOUND)).unwrap();
    let mut reply = [0; 5];
    connection.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+OK\r\n");
}

#[test]
fn a_paused_backend_can_be_stopped() {
    let home = Scratch::new();
    let mut redis = Redis::start(&home.0).unwrap();
    redis.pause();
    redis.stop().unwrap();
    assert_eq!(processes_in(&home.0), 0);
}

#[test]
fn a_panic_stops_what_it_unwinds_over() {
    let home = Scratch::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let redis = Redis::start(&home.0).unwrap();
        assert!(!is_open(redis.port()), "panics on purpose");
    }));
    assert!(outcome.is_err());
    assert_eq!(processes_in(&home.0), 0);
}

/// The owner is this test itself, run by this test binary in another process.
#[test]
fn a_killed_owner_leaves_nothing_behind() {
    const DIR: &str = "LASTUNIT_TEST_OWNER_DIR";
    if let Some(dir) = std::env::var_os(DIR) {
        let dir = PathBuf::from(dir);
        let _redis = Redis::start(&dir).unwrap();
        fs::write(dir.join("started"), "").unwrap();
        loop {
            thread::park();
        }
    }
    let home = Scratch::new();
    let (_crate_name, module) = module_path!().split_once("::").unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::a_killed_owner_leaves_nothing_behind")])
        .env(DIR, &home.0)
        .spawn()
        .unwrap();
    eventually(|| home.0.join("started").exists());
    assert!(processes_in(&home.0) > 0);

    owner.kill().unwrap();
    owner.wait().unwrap();

    eventually(|| processes_in(&home.0) == 0);
}

#[test]
fn a_detached_stack_is_found_and_stopped_with_its_data_kept() {
    let home = Scratch::new();
    let stack = Stack::start(&home.0, &|_| ()).unwrap();
    ask_redis(&stack.redis, "SET stock 7");
    let endpoints = stack.detach().unwrap();

    assert_eq!(Stack::running(&home.0).unwrap().as_ref(), Some(&endpoints));
    assert!(matches!(Stack::start(&home.0, &|_| ()), Err(StackError::StillRunning { .. })));
    let Down::Stopped(names) = Stack::down(&home.0).unwrap() else { panic!("it did run") };
    assert_eq!(names, ["redis", "rabbitmq", "epmd", "postgres"]);
    assert_eq!(processes_in(&home.0), 0);
    assert_eq!(Stack::running(&home.0).unwrap(), None);
    assert_eq!(Stack::down(&home.0).unwrap(), Down::NothingRan);

    let stack = Stack::start(&home.0, &|_| ()).unwrap();
    assert_eq!(ask_redis(&stack.redis, "GET stock"), "$1\r\n7\r\n");
    assert_eq!(stack.endpoints(), &endpoints);
}

/// A record names the pid of an innocent process, as it would after the pid was recycled.
#[test]
fn a_recycled_pid_is_not_killed() {
    let home = Scratch::new();
    let dir = home.0.join("redis");
    let mut redis = Redis::start(&dir).unwrap();
    let record = fs::read_to_string(dir.join("processes.json")).unwrap();
    let pid = redis.pids()[0];
    redis.kill().unwrap();
    drop(redis);
    let mut innocent = Innocent::new();
    let recycled =
        record.replace(&format!("\"pid\": {pid}"), &format!("\"pid\": {}", innocent.pid()));
    assert_ne!(recycled, record);
    fs::write(dir.join("processes.json"), recycled).unwrap();

    assert_eq!(Stack::down(&home.0).unwrap(), Down::NothingRan);
    assert!(innocent.is_alive());
    let _redis = Redis::start(&dir).unwrap();
    assert!(innocent.is_alive());
}

#[test]
fn a_directory_in_use_is_refused() {
    let home = Scratch::new();
    let redis = Redis::start(&home.0).unwrap();
    assert!(matches!(Redis::start(&home.0), Err(StackError::InUse { .. })));
    drop(redis);
    assert!(Redis::start(&home.0).is_ok());
}

#[test]
fn a_taken_port_is_replaced_by_a_free_one() {
    let home = Scratch::new();
    let first = Redis::start(&home.0).unwrap();
    let port = first.port();
    drop(first);
    let _squatter = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();

    let second = Redis::start(&home.0).unwrap();

    assert_ne!(second.port(), port);
    assert_eq!(ask_redis(&second, "PING"), "+PONG\r\n");
}

const BOUND: Duration = Duration::from_secs(10);

/// A directory of its own for each test, removed at the end. Declared first in each test, so that
/// it is dropped last.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let dir =
            std::env::temp_dir().join(format!("lastunit-devstack-{}", Uuid::new_v4().simple()));
        fs::create_dir(&dir).unwrap();
        Self(dir.canonicalize().unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = Stack::down(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Innocent(Child);

impl Innocent {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every process of a backend works in the backend's directory or below.
fn processes_in(dir: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let works_there = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir))
    };
    entries.filter(works_there).count()
}

fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Logged in already; the reply to that is still to be read.
fn connect(redis: &Redis) -> TcpStream {
    let url = redis.url();
    let password = url.split(['@', ':']).nth(2).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    write!(stream, "AUTH {password}\r\n").unwrap();
    stream
}

/// The raw reply to one command.
fn ask_redis(redis: &Redis, command: &str) -> String {
    let mut stream = connect(redis);
    write!(stream, "{command}\r\nQUIT\r\n").unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).unwrap();
    replies
        .strip_prefix("+OK\r\n")
        .and_then(|rest| rest.strip_suffix("+OK\r\n"))
        .unwrap()
        .to_owned()
}

fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {BOUND:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
