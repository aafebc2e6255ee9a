//! `lastunit item pause | resume | end | put`: what buyers notice of an operator's changes.

use trials::buyer::Buyer;
use trials::line::{Line, Service, limited};
use trials::messages::hold;
use trials::until::until;
use uuid::Uuid;

use crate::command::{json, lastunit, run, stderr};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_item_sells_nothing_settles_on_and_is_resumed_by_its_own_id_only() {
    let shoes = limited("shoe", 10, 5);
    let mut line = Line::new().await;
    line.sell(&shoes).await;
    let address = line.ingress().await;
    let mut ann = Buyer::new(address, "ann");
    let accepted = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(accepted.status, 202);

    let pause = ["item", "pause", "shoe", "--reason", "a wrong price", "--json"];
    let paused = json(lastunit(&line.config).args(pause));
    let id = paused["pause_id"].as_str().expect("an id").to_owned();
    ann.buy("shoe", "key-2", 1).await.assert_problem(503, "paused", None);
    // What was accepted before is settled, and a difference is corrected.
    line.drift_total(&shoes.item, "ann", 2);
    line.drift(&shoes.item, -3);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    line.until_settled(&shoes.item).await;
    let reconciled = line.reconcile(&shoes.item).await;
    assert_eq!((reconciled.found.added, reconciled.found.buyers.len()), (3, 1));
    assert_eq!(ann.buy("shoe", "key-1", 1).await.status, 200, "a repeat is answered");

    let other = Uuid::new_v4().to_string();
    let second = ["item", "pause", "shoe", "--reason", "another", "--id", &other];
    let refused = run(lastunit(&line.config).args(second));
    assert_eq!(refused.status.code(), Some(1));
    for said in ["a wrong price", &id] {
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
    let wrong = run(lastunit(&line.config).args(["item", "resume", "shoe", "--id", &other]));
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains(&id), "{}", stderr(&wrong));
    ann.buy("shoe", "key-2", 1).await.assert_problem(503, "paused", None);
    let shown = json(lastunit(&line.config).args(["item", "show", "shoe", "--json"]));
    assert_eq!(
        (&shown["pause_id"], &shown["pause_reason"]),
        (&paused["pause_id"], &"a wrong price".into())
    );

    let resume = ["item", "resume", "shoe", "--id", &id, "--json"];
    assert_eq!(json(lastunit(&line.config).args(resume))["pause_id"], serde_json::Value::Null);
    assert!(run(lastunit(&line.config).args(resume)).status.success(), "again changes nothing");
    assert_eq!(ann.buy("shoe", "key-2", 1).await.status, 202);
    assert_eq!(line.assert_law(&shoes.item).await.confirmed_units, 2);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_outlives_the_loss_of_redis() {
    let shoes = limited("shoe", 10, 5);
    let (line, address) = Line::selling(&shoes).await;
    let mut ann = Buyer::new(address, "ann");
    let bought = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(ann.final_state(&bought).await, "confirmed");
    let id = Uuid::new_v4().to_string();
    let pause = ["item", "pause", "shoe", "--reason", "a wrong price", "--id", &id];
    assert!(run(lastunit(&line.config).args(pause)).status.success());
    line.lose_bucket(&shoes.item);
    ann.buy("shoe", "key-2", 1).await.assert_problem(503, "not_warm", None);
    let config = line.config.clone();
    let warmed = tokio::task::spawn_blocking(move || {
        json(lastunit(&config).args(["warm", "shoe", "--json"]))
    });
    let warmed = warmed.await.expect("no panic");
    assert_eq!((&warmed[0]["outcome"], &warmed[0]["available"]), (&"built".into(), &9.into()));
    ann.buy("shoe", "key-2", 1).await.assert_problem(503, "paused", None);
    assert!(run(lastunit(&line.config).args(pause)).status.success(), "the same pause again");
    assert!(
        run(lastunit(&line.config).args(["item", "resume", "shoe", "--id", &id])).status.success()
    );
    assert_eq!(ann.buy("shoe", "key-2", 1).await.status, 202);
    line.assert_law(&shoes.item).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_is_ended_keeps_what_it_accepted_and_is_opened_again() {
    let shoes = limited("shoe", 10, 5);
    let mut line = Line::new().await;
    line.sell(&shoes).await;
    let address = line.ingress().await;
    let held = hold(&line, &shoes.item, "bob", "key-1").await;
    let mut ann = Buyer::new(address, "ann");
    let accepted = ann.buy("shoe", "key-1", 1).await;
    assert_eq!(accepted.status, 202);
    for _ in 0..2 {
        let ended = json(lastunit(&line.config).args(["item", "end", "shoe", "--json"]));
        assert_ne!(ended["closes_at"], shoes.window.closes_at().to_string());
        ann.buy("shoe", "key-2", 1).await.assert_problem(410, "ended", None);
    }
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    assert_eq!(ann.final_state(&accepted).await, "confirmed");
    assert_eq!(line.snapshot(&shoes.item).await.held, 1, "bob's message was never sent");

    let longer = ["item", "put", "shoe", "--total", "10", "--limit", "5", "--closes-at", "+2h"];
    assert_eq!(json(lastunit(&line.config).args(longer).arg("--json"))["outcome"], "changed");
    let again = ann.buy("shoe", "key-2", 1).await;
    assert_eq!(again.status, 202, "{again:?}");
    trials::messages::Post::of(&line).await.place(&[held]).await;
    until("bob's order is decided too", async || {
        let orders = line.ledger.count_orders(&shoes.item).await.ok()?;
        (orders.confirmed == 3).then_some(())
    })
    .await;
    line.assert_law(&shoes.item).await;
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_total_and_the_limit_of_a_warm_item_stay_as_they_are() {
    let shoes = limited("shoe", 10, 5);
    let line = Line::new().await;
    line.sell(&shoes).await;
    for (total, limit, says) in
        [("11", "5", "add-stock"), ("10", "6", "5 a buyer"), ("9", "5", "10 units")]
    {
        let put = ["item", "put", "shoe", "--total", total, "--limit", limit, "--closes-at", "+2h"];
        let refused = run(lastunit(&line.config).args(put));
        assert_eq!(refused.status.code(), Some(1), "{total} {limit}");
        let told = stderr(&refused);
        assert!(told.contains(says) && told.contains("only its window"), "{told}");
    }
    let row = line.ledger.find_item(&shoes.item).await.expect("the ledger").expect("an item");
    assert_eq!(row.sale, shoes, "the window stays too");
    for verb in ["pause", "end"] {
        let mut command = lastunit(&line.config);
        command.args(["item", verb, "ghost"]);
        if verb == "pause" {
            command.args(["--reason", "none"]);
        }
        let refused = run(&mut command);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains("lastunit item list"), "{}", stderr(&refused));
    }
}
