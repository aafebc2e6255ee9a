//! Buckets, from the operator's side.

use serde_json::{Value, json};
use shared::devstack::World;

use crate::command::{bare, json as told_as_json, lastunit, run, stderr, stdout};
use crate::dlq::Office;

#[tokio::test]
async fn an_item_is_put_with_its_buckets_and_divided_anew_once_it_is_warm() {
    let World { config } = World::new().await;
    let put = ["item", "put", "shoe", "--total", "500", "--buckets"];
    assert_eq!(
        told_as_json(lastunit(&config).args(put).args(["16", "--json"]))["outcome"],
        "created"
    );
    let show = || told_as_json(lastunit(&config).args(["item", "show", "shoe", "--json"]));
    let cold = show();
    assert_eq!((&cold["buckets"], &cold["redis_buckets"]), (&16.into(), &Value::Null));
    assert!(run(lastunit(&config).args(["warm", "shoe"])).status.success());
    let warm = show();
    assert_eq!((&warm["buckets"], &warm["redis_buckets"]), (&16.into(), &16.into()));
    assert_eq!((&warm["redis_available"], &warm["moving"]), (&500.into(), &0.into()));
    let table = stdout(&run(lastunit(&config).args(["item", "show", "shoe"])));
    for row in ["buckets in the ledger", "buckets in Redis", "moving between buckets"] {
        assert!(table.contains(row), "{table}");
    }

    let late = run(lastunit(&config).args(put).arg("4"));
    assert_eq!(late.status.code(), Some(1), "fixed by now: {}", stdout(&late));
    assert!(stderr(&late).contains("lastunit item rebucket"), "{}", stderr(&late));
    let rebucket = |buckets: &str| {
        let mut command = lastunit(&config);
        command.args(["item", "rebucket", "shoe", buckets]);
        command
    };
    let done = told_as_json(rebucket("4").arg("--json"));
    let of = |value: &Value, fields: &[&str]| -> Vec<Value> {
        fields.iter().map(|field| value[*field].clone()).collect()
    };
    let told = of(&done, &["item", "from", "to", "epoch", "available"]);
    assert_eq!(told, [json!("shoe"), json!(16), json!(4), json!(2), json!(500)]);
    let paused_ms = done["paused_ms"].as_f64().expect("a number");
    assert!(paused_ms > 0.0 && paused_ms < 60_000.0, "{done}");
    let shown = show();
    let layout = of(&shown, &["buckets", "redis_buckets", "epoch", "redis_epoch"]);
    assert_eq!(layout, [json!(4), json!(4), json!(2), json!(2)]);
    assert_eq!((&shown["state"], &shown["redis_available"]), (&"live".into(), &500.into()));

    let again = told_as_json(rebucket("4").arg("--json"));
    let same = of(&again, &["from", "to", "epoch"]);
    assert_eq!(same, [json!(4), json!(4), json!(2)], "nothing changes");
    assert_eq!(again["paused_ms"], 0.0);
    assert_eq!(stdout(&run(&mut rebucket("4"))), "shoe has 4 buckets already.\n");
    let told = stdout(&run(&mut rebucket("1")));
    let begins =
        "shoe has 1 bucket now, it had 4: epoch 3, 500 units available, nobody could buy for";
    assert!(told.starts_with(begins) && told.ends_with(" ms.\n"), "{told}");
}

#[test]
fn an_item_has_from_1_to_64_buckets() {
    for buckets in ["0", "65", "many"] {
        for arguments in [["item", "rebucket", "shoe"], ["item", "put", "shoe"]] {
            let mut command = bare();
            command.args(arguments);
            if arguments[1] == "put" {
                command.args(["--total", "5", "--buckets"]);
            }
            let output = run(command.arg(buckets));
            assert_eq!(output.status.code(), Some(2), "{arguments:?} {buckets}");
            assert!(stderr(&output).contains("from 1 to 64"), "{}", stderr(&output));
        }
    }
}

#[tokio::test]
async fn what_cannot_be_divided_is_said_with_what_to_do() {
    let World { config } = World::new().await;
    let unknown = run(lastunit(&config).args(["item", "rebucket", "ghost", "4"]));
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("lastunit item list"), "{}", stderr(&unknown));

    assert!(run(lastunit(&config).args(["item", "put", "shoe", "--total", "5"])).status.success());
    let cold = run(lastunit(&config).args(["item", "rebucket", "shoe", "4"]));
    assert_eq!(cold.status.code(), Some(1));
    for hint in ["lastunit warm shoe", "lastunit item put shoe --buckets"] {
        assert!(stderr(&cold).contains(hint), "{}", stderr(&cold));
    }
    let shown = told_as_json(lastunit(&config).args(["item", "show", "shoe", "--json"]));
    assert_eq!((&shown["buckets"], &shown["state"]), (&1.into(), &"not_warm".into()));
}

#[tokio::test]
async fn an_item_with_a_parked_letter_is_not_divided_anew_before_the_letter_is_dealt_with() {
    let office = Office::selling(9).await;
    office.park(1).await;
    let rebucket = ["item", "rebucket", "shoe", "4"];
    let refused = run(lastunit(&office.config).args(rebucket));
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    for said in [
        "unsettled holds of shoe after 2 s: 1",
        "lastunit dlq list --item shoe",
        "sells on as before",
    ] {
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
    let shown = told_as_json(lastunit(&office.config).args(["item", "show", "shoe", "--json"]));
    let as_before = (&shown["redis_buckets"], &shown["frozen_ms"], &shown["held"]);
    assert_eq!(as_before, (&json!(1), &json!(0), &json!(1)), "{shown}");
    office.hold(&[7]).await;
    let listed = office.json(&["list", "--item", "shoe"]);
    let listed = listed.as_array().map(Vec::len);
    assert_eq!(listed, Some(1), "the command that it names shows the letter");
}
