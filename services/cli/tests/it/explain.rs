//! One request's story, from its hold to its end.

use shared::domain::ReservationId;

use crate::command::{json, lastunit, run, stderr, stdout};
use crate::dlq::Office;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_explained_from_its_hold_to_its_end() {
    let office = Office::selling(10).await;
    let held = office.hold(&[7]).await.remove(0);
    let request = held.request_id.to_string();
    let explained = || json(lastunit(&office.config).args(["explain", "shoe", &request, "--json"]));

    let story = explained();
    assert_eq!(
        (&story["hold"]["state"], &story["message"]["where"]),
        (&"held".into(), &"nowhere".into())
    );
    assert_eq!(story["next"]["step"], "publish_again", "{story}");
    assert!(story["next"]["look_at"].is_string(), "it says when: {story}");

    office.park_all(std::slice::from_ref(&held)).await;
    let story = explained();
    assert_eq!(
        (&story["message"]["where"], &story["next"]["step"]),
        (&"parked".into(), &"operator".into())
    );
    assert_eq!(story["letters"][0]["reason"], "hopeless");

    office.ledger.commit(std::slice::from_ref(&held)).await.expect("sold");
    let story = explained();
    assert_eq!(
        (&story["order"]["buyer"], &story["next"]["step"]),
        (&"buyer-7".into(), &"confirm".into())
    );
    office.stock.confirm(&office.item, std::slice::from_ref(&held)).await.expect("confirmed");
    assert_eq!(explained()["next"]["step"], "nothing");

    let text = stdout(&run(lastunit(&office.config).args(["explain", "shoe", &request])));
    for said in
        ["buyer-7 reserved 1", "the hold is confirmed", "The ledger has sold 1", "Nothing will"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_knows_is_said() {
    let office = Office::selling(10).await;
    let ghost = ReservationId::mint().to_string();
    let output = run(lastunit(&office.config).args(["explain", "shoe", &ghost]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&ghost), "{}", stderr(&output));
    let output = run(lastunit(&office.config).args(["explain", "hat", &ghost]));
    assert!(stdout(&output).contains("no item hat"), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(1));
    let output = run(lastunit(&office.config).args(["explain", "shoe", "seven"]));
    assert_eq!(output.status.code(), Some(2));
}
