//! `lastunit reconcile`: shows what differs and why, and corrects only when it is told to.

use shared::domain::RequestId;
use trials::line::{Line, limited};
use trials::messages::{hold, reservation};

use crate::command::{bare, json, lastunit, run, stderr, stdout};

/// One order that Redis never took, and three units that somebody has added to Redis.
async fn that_differs() -> (Line, RequestId) {
    let shoes = limited("shoe", 10, 5);
    let line = Line::new().await;
    line.sell(&shoes).await;
    hold(&line, &shoes.item, "bob", "key-1").await;
    let never_taken = reservation(&shoes.item, "ann", "key-1", 2);
    line.ledger.commit(std::slice::from_ref(&never_taken)).await.expect("decided");
    line.drift(&shoes.item, 3);
    (line, never_taken.request_id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_tells_the_causes_and_changes_nothing() {
    let (line, request_id) = that_differs().await;
    let item = "shoe".parse().expect("an item");
    for _ in 0..2 {
        let plan = run(lastunit(&line.config).args(["reconcile", "shoe", "--plan"]));
        assert_eq!(plan.status.code(), Some(1), "{}", stderr(&plan));
        let told = stdout(&plan);
        for said in [
            "shoe: Redis sells 5 units too many; 0 corrected".to_owned(),
            format!("-2 by request {request_id}: the ledger sold it, Redis never took its units"),
            "-3 by no request".to_owned(),
            "buyer ann counts 2 units too few; not corrected".to_owned(),
            "0 of 1 items agree".to_owned(),
        ] {
            assert!(told.contains(&said), "{said:?} is not in {told}");
        }
        assert_eq!((line.available(&item).await, line.total_in_redis(&item, "ann")), (12, 0));
    }

    let plan = run(lastunit(&line.config).args(["reconcile", "--plan", "--json"]));
    assert_eq!(plan.status.code(), Some(1));
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    let shoe = &plan[0];
    assert_eq!((&shoe["item"], &shoe["agrees"]), (&"shoe".into(), &false.into()));
    assert_eq!((&shoe["difference"], &shoe["corrected"]), (&(-5).into(), &0.into()));
    assert_eq!(shoe["causes"][0]["request_id"], request_id.to_string());
    assert_eq!((&shoe["causes"][0]["units"], &shoe["unexplained"]), (&(-2).into(), &(-3).into()));
    assert_eq!(shoe["buyers"][0]["buyer"], "ann");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plan_has_shown_is_corrected_by_apply() {
    let (line, _) = that_differs().await;
    let item = "shoe".parse().expect("an item");
    let apply = json(lastunit(&line.config).args(["reconcile", "shoe", "--apply", "--json"]));
    assert_eq!((&apply[0]["difference"], &apply[0]["corrected"]), (&(-5).into(), &(-5).into()));
    assert_eq!((&apply[0]["agrees"], &apply[0]["buyers_corrected"]), (&true.into(), &true.into()));
    assert_eq!((line.available(&item).await, line.total_in_redis(&item, "ann")), (7, 2));
    let again = run(lastunit(&line.config).args(["reconcile", "shoe", "--apply"]));
    assert!(again.status.success());
    assert!(stdout(&again).contains("1 of 1 items agree"), "{}", stdout(&again));
    let plan = json(lastunit(&line.config).args(["reconcile", "--plan", "--json"]));
    assert_eq!((&plan[0]["agrees"], &plan[0]["difference"]), (&true.into(), &0.into()));
    assert_eq!(line.available(&item).await, 7, "once");
    let shown = json(lastunit(&line.config).args(["item", "show", "shoe", "--json"]));
    assert!(
        shown["last_finding"].as_str().is_some_and(|said| said.contains("differed by")),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_cannot_be_compared_is_said_and_keeps_no_other_from_it() {
    let (line, _) = that_differs().await;
    line.put(&limited("cold", 1, 1)).await;
    let compared =
        run(lastunit(&line.config).args(["reconcile", "ghost", "cold", "shoe", "--apply"]));
    assert_eq!(compared.status.code(), Some(1));
    let told = stdout(&compared);
    assert!(told.contains("there is no item ghost; `lastunit item list`"), "{told}");
    assert!(told.contains("cold is not in Redis") && told.contains("lastunit warm cold"), "{told}");
    assert!(told.contains("shoe: Redis sells 5 units too many; -5 corrected"), "{told}");
    assert!(told.contains("1 of 3 items agree"), "{told}");
}

#[test]
fn somebody_has_to_say_whether_it_only_looks() {
    for wrong in [
        &["reconcile", "shoe"][..],
        &["reconcile", "shoe", "--plan", "--apply"],
        &["reconcile", "shoe", "--plan", "--ledger-restored"],
        &["reconcile", "a shoe", "--plan"],
    ] {
        let output = run(bare().args(wrong));
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("--help"), "{}", stderr(&output));
    }
}
