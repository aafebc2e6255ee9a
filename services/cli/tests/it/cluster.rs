//! Operators' commands on a real Redis Cluster.

use shared::config::RedisMode;
use shared::devstack::RedisCluster;
use tokio::task::block_in_place;
use trials::line::Line;
use trials::messages::{hold, reservation};

use crate::command::{Folder, json, lastunit, run, stderr, stdout};
use crate::refusals::{assert_refused, assert_tells};

/// More than enough to have some on each of three primaries.
const ITEMS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_command_a_cluster_as_they_command_one_redis() {
    let folder = Folder::new("cluster");
    let cluster = block_in_place(|| RedisCluster::start(folder.path())).expect("a cluster");
    let mut line = Line::new().await;
    line.move_to_cluster(&cluster);
    let lastunit = |arguments: &[&str]| {
        let mut command = lastunit(&line.config);
        command.args(arguments);
        command
    };

    for number in 0..ITEMS {
        let item = format!("shoe-{number}");
        let put = run(&mut lastunit(&["item", "put", &item, "--total", "10"]));
        assert!(put.status.success(), "{}", stderr(&put));
    }
    let warmed = run(&mut lastunit(&["warm", "--all"]));
    assert!(warmed.status.success(), "{}", stderr(&warmed));
    let told = stdout(&warmed);
    assert_eq!(told.lines().filter(|line| line.contains("is warmed up: 10 units")).count(), ITEMS);
    assert_eq!(json(&mut lastunit(&["store", "show", "--json"]))["state"], "bound");

    for number in 0..ITEMS {
        let item = format!("shoe-{number}");
        let id = item.parse().expect("an item");
        let held = hold(&line, &id, "bob", "key-1").await;
        let story =
            json(&mut lastunit(&["explain", &item, &held.request_id.to_string(), "--json"]));
        assert_eq!(story["hold"]["state"], "held", "{story}");
        let free = json(&mut lastunit(&["lock", "show", &item, "--json"]));
        assert_eq!(free["state"], "free", "{free}");
    }

    // One is decided and was never taken.
    let item = "shoe-0".parse().expect("an item");
    let never_taken = reservation(&item, "ann", "key-1", 2);
    line.ledger.commit(std::slice::from_ref(&never_taken)).await.expect("decided");
    let plan = run(&mut lastunit(&["reconcile", "--plan"]));
    assert_eq!(plan.status.code(), Some(1), "{}", stderr(&plan));
    assert!(stdout(&plan).contains("shoe-0: Redis sells 2 units too many; 0 corrected"));
    let apply = json(&mut lastunit(&["reconcile", "shoe-0", "--apply", "--json"]));
    assert_eq!(apply[0]["corrected"], -2, "{apply}");
    let plan = run(&mut lastunit(&["reconcile", "--plan"]));
    assert!(plan.status.success(), "{}", stdout(&plan));
    assert!(stdout(&plan).contains(&format!("{ITEMS} of {ITEMS} items agree")));

    let pause = ["item", "pause", "shoe-0", "--reason", "a wrong price", "--json"];
    let id = json(&mut lastunit(&pause))["pause_id"].as_str().expect("an id").to_owned();
    let shown = json(&mut lastunit(&["item", "show", "shoe-0", "--json"]));
    assert_eq!(shown["pause_id"], id, "{shown}");
    let resumed = run(&mut lastunit(&["item", "resume", "shoe-0", "--id", &id]));
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert_eq!(line.snapshot(&item).await.pause, None);

    // The same with the wrong idea of what it is.
    let mut alone = line.config.clone();
    alone.redis.mode = RedisMode::Single;
    alone.redis.url = cluster.member(0).url().parse().expect("a URL");
    let address = alone.redis.url.address();
    let words = [address.as_str(), "a part of the items", "LASTUNIT_REDIS_MODE", "cluster"];
    assert_refused(&alone, &words);
    let warm = run(crate::command::lastunit(&alone).args(["warm", "shoe-0"]));
    assert_tells(&alone, &stderr(&warm), &words);
    // Every primary has to keep what it is told; the first three members are.
    let last = |policy: &str| cluster.ask(2, &format!("CONFIG SET maxmemory-policy {policy}"));
    assert_eq!(last("allkeys-lru").expect("a reply"), "OK");
    let node = format!("node 127.0.0.1:{}", cluster.member(2).port());
    assert_refused(&line.config, &["allkeys-lru", "noeviction", &node]);
    line.stop_all().await;
}
