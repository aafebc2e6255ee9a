//! Items, from the operator's side.

use shared::devstack::World;

use crate::command::{json, lastunit, run, stderr, stdout};

#[tokio::test]
async fn an_item_is_put_warmed_and_shown() {
    let World { config } = World::new().await;
    let put = ["item", "put", "shoe", "--total", "500", "--limit", "2", "--closes-at", "+1h"];
    assert_eq!(json(lastunit(&config).args(put).arg("--json"))["outcome"], "created");
    let again = ["item", "put", "shoe", "--total", "500", "--limit", "2", "--json"];
    assert_eq!(json(lastunit(&config).args(again))["outcome"], "unchanged", "the window stays");

    let cold = json(lastunit(&config).args(["item", "show", "shoe", "--json"]));
    assert_eq!(cold["redis_available"], serde_json::Value::Null);
    let warm = json(lastunit(&config).args(["warm", "shoe", "--json"]));
    assert_eq!((&warm[0]["outcome"], &warm[0]["available"]), (&"built".into(), &500.into()));
    let warm = json(lastunit(&config).args(["warm", "shoe", "--json"]));
    assert_eq!(warm[0]["outcome"], "live", "a live item is left alone");

    let shown = json(lastunit(&config).args(["item", "show", "shoe", "--json"]));
    assert_eq!(shown["redis_available"], 500);
    assert_eq!(shown["ledger_available"], 500);
    assert_eq!(shown["limit_per_buyer"], 2);
    let listed = json(lastunit(&config).args(["item", "list", "--json"]));
    assert_eq!(listed[0]["item"], "shoe");
    let table = stdout(&run(lastunit(&config).args(["item", "list"])));
    assert!(table.contains("shoe") && table.contains("500"), "{table}");
}

#[tokio::test]
async fn a_warm_item_keeps_its_terms() {
    let World { config } = World::new().await;
    assert!(run(lastunit(&config).args(["item", "put", "hat", "--total", "5"])).status.success());
    assert!(run(lastunit(&config).args(["warm", "hat"])).status.success());
    let output = run(lastunit(&config).args(["item", "put", "hat", "--total", "6"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("lastunit item add-stock"), "{}", stderr(&output));
    let shown = json(lastunit(&config).args(["item", "show", "hat", "--json"]));
    assert_eq!(shown["total"], 5);
}

#[tokio::test]
async fn what_is_not_put_stays_as_it_is() {
    let World { config } = World::new().await;
    let new = run(lastunit(&config).args(["item", "put", "hat", "--closes-at", "+1h"]));
    assert_eq!(new.status.code(), Some(1));
    assert!(stderr(&new).contains("--total"), "{}", stderr(&new));

    let put = |arguments: &[&str]| {
        let output = run(lastunit(&config).args(["item", "put", "hat"]).args(arguments));
        assert!(output.status.success(), "{}", stderr(&output));
        json(lastunit(&config).args(["item", "show", "hat", "--json"]))
    };
    put(&["--total", "5", "--limit", "2"]);
    assert!(run(lastunit(&config).args(["warm", "hat"])).status.success());
    let longer = put(&["--closes-at", "2030-01-01T00:00:00Z"]);
    assert_eq!((&longer["total"], &longer["limit_per_buyer"]), (&5.into(), &2.into()));
    assert_eq!(longer["closes_at"], "2030-01-01T00:00:00.000Z");
    let unlimited = run(lastunit(&config).args(["item", "put", "hat", "--limit", "none"]));
    assert_eq!(unlimited.status.code(), Some(1), "a limit is fixed once the item is warm");
}

#[tokio::test]
async fn what_does_not_exist_is_said_with_what_to_do() {
    let World { config } = World::new().await;
    let output = run(lastunit(&config).args(["item", "show", "ghost"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("lastunit item list"), "{}", stderr(&output));
    assert!(run(lastunit(&config).args(["item", "put", "real", "--total", "1"])).status.success());
    let output = run(lastunit(&config).args(["warm", "ghost", "real"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("lastunit item put ghost"), "{}", stderr(&output));
    assert!(stdout(&output).contains("real is warmed up"), "the other item gets its warm-up");
}

#[tokio::test]
async fn migrating_again_changes_nothing() {
    let World { config } = World::new().await;
    let first = json(lastunit(&config).args(["migrate", "--json"]));
    assert_eq!(first, json(lastunit(&config).args(["migrate", "--json"])));
}

#[tokio::test]
async fn a_ledger_without_tables_says_what_to_do() {
    let World { mut config } = World::new().await;
    config.ledger.url = config.ledger.url.with_path("postgres");
    let output = run(lastunit(&config).args(["item", "list"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("lastunit migrate"), "{}", stderr(&output));
}
