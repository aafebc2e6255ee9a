//! Locks of items, from the operator's side.

use std::time::Duration;

use shared::config::limits::LOCK_LEASE;
use shared::devstack::World;
use shared::stock::{LockRequest, Stock};

use crate::command::{bare, json, lastunit, run, stderr, stdout};

#[tokio::test]
async fn a_lock_is_shown_with_who_has_it_and_for_how_long() {
    let World { config } = World::new().await;
    assert!(run(lastunit(&config).args(["item", "put", "shoe", "--total", "5"])).status.success());
    let free = json(lastunit(&config).args(["lock", "show", "shoe", "--json"]));
    assert_eq!((&free["state"], &free["fence"]), (&"free".into(), &0.into()));
    assert_eq!(free["holder"], serde_json::Value::Null);

    let stock = Stock::connect(&config.redis, &config.namespace).expect("a URL");
    let item = "shoe".parse().expect("an item");
    let (lease, wait) = (LOCK_LEASE, Duration::ZERO);
    let request = LockRequest { purpose: "counting", lease, wait, floor: 41 };
    let lock = stock.lock(&item, &request).await.expect("it is free");
    let held = json(lastunit(&config).args(["lock", "show", "shoe", "--json"]));
    assert_eq!((&held["state"], &held["purpose"]), (&"held".into(), &"counting".into()));
    assert_eq!((&held["fence"], &held["ledger_fence"]), (&42.into(), &0.into()));
    assert_eq!(held["waiting"], 0);
    let left = held["lease_left_ms"].as_u64().expect("a number");
    assert!(left > 0 && u128::from(left) <= LOCK_LEASE.as_millis(), "{left}");
    let holder = held["holder"].as_str().expect("a name");
    assert!(holder.ends_with(&format!("/{}", std::process::id())), "{holder}");
    let table = stdout(&run(lastunit(&config).args(["lock", "show", "shoe"])));
    assert!(table.contains(holder) && table.contains("fence in the ledger"), "{table}");
    lock.release().await;
}

#[tokio::test]
async fn the_lock_of_an_item_that_does_not_exist_is_an_error() {
    let World { config } = World::new().await;
    let output = run(lastunit(&config).args(["lock", "show", "ghost"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("lastunit item list"), "{}", stderr(&output));
}

#[test]
fn nothing_frees_a_lock_and_the_help_says_what_to_do_instead() {
    let help = stdout(&run(bare().args(["lock", "show", "--help"])));
    // However the lines are broken.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("no command that frees a lock"), "{help}");
    assert!(help.contains(&format!("{} seconds", LOCK_LEASE.as_secs())), "{help}");
    for verb in ["free", "release", "break", "remove"] {
        let output = run(bare().args(["lock", verb, "shoe"]));
        assert_eq!(output.status.code(), Some(2), "{verb}");
    }
}
