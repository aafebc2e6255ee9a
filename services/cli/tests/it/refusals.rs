//! What does not belong together, or cannot be relied upon, is refused: exit status 1, with what was
//! found where and what to do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use shared::config::{Config, RedisMode};
use shared::devstack::{Backend, RabbitMq, Recipe, Redis, World};
use shared::domain::StoreId;
use shared::ledger::Ledger;
use shared::stock::Stock;

use crate::command::{Folder, json, lastunit, run, stderr, stdout};

const SERVICES: [&str; 4] = ["ingress", "consumer", "compensator", "reconciler"];

/// Longer than looking twice takes, by far.
const REFUSED_WITHIN: Duration = Duration::from_secs(20);

/// A backend of the test's own, and its folder.
fn own<R: Recipe>(name: &str) -> (Backend<R>, Folder) {
    let folder = Folder::new(name);
    (Backend::start(folder.path()).expect("a backend of its own"), folder)
}

/// What a command says that must end by itself with exit status 1.
fn refused(command: &mut Command) -> String {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("a process");
    let until = Instant::now() + REFUSED_WITHIN;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            panic!("{command:?} is not refused");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut log = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
    assert_eq!(status.code(), Some(1), "{log}");
    // The last line is the error; what comes before is the log.
    log.lines().last().expect("an error").to_owned()
}

/// Every service is refused, by a message that has all of these and no password.
pub(crate) fn assert_refused(config: &Config, words: &[&str]) {
    for service in SERVICES {
        let mut command = lastunit(config);
        let error = refused(command.env("LASTUNIT_HTTP_LISTEN", "127.0.0.1:0").arg(service));
        assert!(error.starts_with(&format!("lastunit: {service} cannot run: ")), "{error}");
        assert_tells(config, &error, words);
    }
}

pub(crate) fn assert_tells(config: &Config, error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
    for url in [config.redis.url.first(), &config.rabbitmq.url, &config.ledger.url] {
        let password = url.expose().split([':', '@']).nth(2).expect("a password");
        assert!(!error.contains(password), "a password in: {error}");
    }
}

/// With an item that is warmed up, so that the ledger is bound.
async fn bound_world() -> Config {
    let World { config } = World::new().await;
    assert!(run(lastunit(&config).args(["item", "put", "shoe", "--total", "5"])).status.success());
    assert!(run(lastunit(&config).args(["warm", "shoe"])).status.success());
    config
}

fn say(redis: &Redis, command: &str) {
    let url = redis.url();
    let password = url.split([':', '@']).nth(2).expect("a password");
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).expect("a connection");
    write!(stream, "AUTH {password}\r\n{command}\r\nQUIT\r\n").expect("it is sent");
    let mut replies = String::new();
    stream.read_to_string(&mut replies).expect("the replies");
    assert_eq!(replies, "+OK\r\n+OK\r\n+OK\r\n", "{command}");
}

#[tokio::test]
async fn another_namespace_on_a_bound_ledger_is_refused() {
    let ours = bound_world().await;
    let namespace = format!("{}-x", ours.namespace);
    let other = Config { namespace: namespace.parse().expect("a namespace"), ..ours.clone() };
    let words = [ours.namespace.as_str(), &namespace, "LASTUNIT_NAMESPACE", "ledger.url"];
    assert_refused(&other, &words);
    let warm = run(lastunit(&other).args(["warm", "shoe"]));
    assert_eq!(warm.status.code(), Some(1));
    assert_tells(&other, &stderr(&warm), &words);
    assert_eq!(json(lastunit(&ours).args(["store", "show", "--json"]))["state"], "bound");
}

#[tokio::test]
async fn a_second_ledger_on_the_namespace_of_a_redis_is_refused() {
    let ours = bound_world().await;
    let store = Stock::connect(&ours.redis, &ours.namespace).expect("a URL").store().await;
    let store = store.expect("an answer").expect("bound").to_string();
    let unbound = Config { namespace: ours.namespace.clone(), ..World::new().await.config };
    let words = [store.as_str(), "never had a store", ours.namespace.as_str(), "ledger.url"];
    assert_refused(&unbound, &words);
    let warm = run(lastunit(&unbound).args(["warm", "shoe"]));
    assert_tells(&unbound, &stderr(&warm), &words);

    // The same, after the other ledger has been bound elsewhere.
    let ledger = Ledger::connect(&unbound.ledger).expect("a URL");
    let elsewhere = StoreId::mint();
    ledger.bind_store(&unbound.namespace, elsewhere, None).await.expect("bound");
    let named = elsewhere.to_string();
    assert_refused(&unbound, &[&store, &named, "delete the keys"]);
    let shown = json(lastunit(&unbound).args(["store", "show", "--json"]));
    assert_eq!((&shown["state"], &shown["redis_store"]), (&"misfit".into(), &store.into()));
}

#[tokio::test]
async fn a_redis_that_evicts_is_refused() {
    let (redis, _folder) = own::<shared::devstack::RedisRecipe>("evicting");
    let World { mut config } = World::new().await;
    config.redis.url = redis.url().parse().expect("a URL");
    say(&redis, "CONFIG SET maxmemory-policy allkeys-lru");
    let address = config.redis.url.address();
    assert_refused(&config, &["allkeys-lru", "noeviction", &address]);
    let warm = run(lastunit(&config).args(["warm", "shoe"]));
    assert_eq!(warm.status.code(), Some(1));
    assert_tells(&config, &stderr(&warm), &["allkeys-lru"]);
}

#[tokio::test]
async fn one_redis_is_no_cluster() {
    let World { mut config } = World::new().await;
    config.redis.mode = RedisMode::Cluster;
    let address = config.redis.url.address();
    let words = [address.as_str(), "no node of a Redis Cluster", "LASTUNIT_REDIS_MODE", "single"];
    assert_refused(&config, &words);
    let warm = run(lastunit(&config).args(["warm", "shoe"]));
    assert_eq!(warm.status.code(), Some(1));
    assert_tells(&config, &stderr(&warm), &words);
}

#[tokio::test]
async fn a_ledger_that_does_not_wait_for_its_disk_is_refused() {
    let World { config } = World::new().await;
    let ledger = Ledger::connect(&config.ledger).expect("a URL");
    let name = config.ledger.url.expose().rsplit('/').next().expect("a database").to_owned();
    let off = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    ledger.meddle(&off).await.expect("obeyed");
    assert_refused(&config, &["synchronous_commit is off", "ALTER DATABASE", &name]);
}

#[tokio::test]
async fn a_queue_with_other_properties_is_refused_by_its_name() {
    let (rabbitmq, _folder) = own::<shared::devstack::RabbitMqRecipe>("classic");
    let config = bound_world().await;
    let queue = format!("{}.orders.1", config.namespace);
    declare_classic(&rabbitmq, &queue);
    let mut config = config;
    config.rabbitmq.url = rabbitmq.url().parse().expect("a URL");
    let address = config.rabbitmq.url.address();
    let words = [queue.as_str(), address.as_str(), "inequivalent arg", "delete it", "namespace"];
    assert_refused(&config, &words);
}

fn declare_classic(rabbitmq: &RabbitMq, queue: &str) {
    let declare = format!(
        "rabbit_amqqueue:declare(rabbit_misc:r(<<\"/\">>, queue, <<\"{queue}\">>), true, false, [],
                                 none, <<\"trial\">>)."
    );
    rabbitmq.ctl(&["eval", &declare]).expect("declared");
}

#[tokio::test]
async fn a_store_is_shown_before_and_after_it_is_bound() {
    let World { config } = World::new().await;
    let show = ["store", "show", "--json"];
    let unbound = json(lastunit(&config).args(show));
    assert_eq!(unbound["state"], "unbound");
    assert_eq!(unbound["redis_store"], serde_json::Value::Null);
    assert!(run(lastunit(&config).args(["item", "put", "shoe", "--total", "5"])).status.success());
    assert!(run(lastunit(&config).args(["warm", "shoe"])).status.success());
    let bound = json(lastunit(&config).args(show));
    assert_eq!(bound["state"], "bound");
    assert_eq!(bound["ledger_namespace"], config.namespace.as_str());
    assert_eq!(bound["ledger_store"], bound["redis_store"]);
    assert!(bound["unseen_ms"].as_u64().is_some_and(|unseen| unseen < 20_000), "{bound}");
    assert!(bound["environment"].is_string() && bound["redis"].is_string(), "{bound}");
    let table = stdout(&run(lastunit(&config).args(["store", "show"])));
    assert!(table.contains("this Redis is the one that may sell"), "{table}");
    let password = config.redis.url.expose().split([':', '@']).nth(2).expect("a password");
    assert!(!table.contains(password), "{table}");
}
