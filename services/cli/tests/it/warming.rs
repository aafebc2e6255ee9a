//! `lastunit warm --all`.

use trials::buyer::at_once;
use trials::line::{Line, sale};

use crate::command::{lastunit, run, stderr, stdout};

const ITEMS: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_items_are_warmed_up_by_one_command_and_left_alone_by_the_next() {
    let line = Line::new().await;
    at_once((0..ITEMS).map(|number| {
        let ledger = line.ledger.clone();
        async move { ledger.put_item(&sale(&format!("item-{number}"), 5), None).await.expect("put") }
    }))
    .await;
    for live_before in ["0 of them", "300 of them"] {
        let warmed = run(lastunit(&line.config).args(["warm", "--all"]));
        assert!(warmed.status.success(), "{}", stderr(&warmed));
        let told = stdout(&warmed);
        assert!(told.contains("300 items are warm") && told.contains(live_before), "{told}");
    }
    let listed = run(lastunit(&line.config).args(["warm", "--all", "--json"]));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let all = listed.as_array().expect("a list");
    assert_eq!(all.len(), ITEMS);
    assert!(all.iter().all(|one| one["outcome"] == "live" && one["available"] == 5), "{listed}");
}
