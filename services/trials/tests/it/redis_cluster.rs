//! A sale on a real Redis Cluster: items live on different primaries, and one primary may be lost in
//! mid-sale.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::devstack::RedisCluster;
use shared::domain::Sale;
use tokio::task::block_in_place;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited, sale};
use trials::stack::{Own, own_cluster};
use trials::throng::Throng;
use trials::until::{PATIENCE, within};

const SOON: Duration = Duration::from_millis(500);

/// How soon after a loss the item must be on sale again, without a person: a replica takes over, and
/// what was reserved before is decided.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// How soon buyers of other items are served who were not concerned at all.
const UNDISTURBED: Duration = Duration::from_secs(10);

async fn line_on(cluster: &Own<RedisCluster>) -> Line {
    let mut line = Line::new().await;
    line.move_to_cluster(&cluster.backend);
    line.hurry(SOON);
    line
}

/// The member that keeps an item.
fn keeper_of(line: &Line, cluster: &RedisCluster, item: &str) -> usize {
    let key = format!("{}:{{{item}#0}}:sale", line.config.namespace);
    block_in_place(|| cluster.owner_of(&key)).expect("an owner")
}

/// One name of an item for each member that keeps any.
fn names(line: &Line, cluster: &RedisCluster) -> BTreeMap<usize, String> {
    let names = (0..30).map(|number| format!("shoe-{number}"));
    let names: BTreeMap<_, _> = names.map(|name| (keeper_of(line, cluster, &name), name)).collect();
    assert_eq!(names.len(), 3, "thirty items are on all three primaries");
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_buys_exactly_what_is_there_of_items_on_every_primary() {
    const UNITS: u64 = 20;
    const BUYERS: usize = 30;
    let cluster = own_cluster();
    let mut line = line_on(&cluster).await;
    let shoes: Vec<Sale> = names(&line, &cluster.backend)
        .values()
        .flat_map(|name| [format!("{name}.a"), format!("{name}.b"), name.clone()])
        .map(|name| limited(&name, UNITS, 1))
        .collect();
    for shoe in &shoes {
        line.sell(shoe).await;
    }
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);

    let items: Vec<String> = shoes.iter().map(|shoe| shoe.item.to_string()).collect();
    let bought = at_once((0..BUYERS).map(|number| {
        let items = items.clone();
        async move {
            let mut buyer = Buyer::new(address, format!("buyer-{number}"));
            let mut accepted = Vec::new();
            for item in &items {
                let answer = buyer.buy_patiently(item, "key-1", 1).await;
                match answer.status {
                    202 => accepted.push((item.clone(), answer)),
                    _ => answer.assert_problem(409, "sold_out", None),
                }
            }
            (buyer, accepted)
        }
    }))
    .await;
    let won: usize = bought.iter().map(|(_, accepted)| accepted.len()).sum();
    assert_eq!(won as u64, UNITS * items.len() as u64);
    for (mut buyer, accepted) in bought {
        for (item, answer) in accepted {
            assert_eq!(buyer.final_state(&answer).await, "confirmed");
            let again = buyer.buy(&item, "key-1", 1).await;
            assert!(again.is_replayed() && again.status == 200, "{again:?}");
            buyer.buy(&item, "key-2", 1).await.assert_problem(409, "limit_reached", None);
        }
    }
    let mut visitor = Buyer::new(address, "visitor");
    for shoe in &shoes {
        let books = line.assert_law(&shoe.item).await;
        assert_eq!((books.confirmed_units, books.redis_available), (UNITS, Some(0)));
        let shown = visitor.get(&format!("/v1/items/{}", shoe.item)).await;
        assert_eq!(shown.status, 200, "{shown:?}");
    }
    let ready = visitor.get("/readyz").await;
    assert_eq!((ready.status, ready.body["checks"]["redis"].as_str()), (200, Some("ok")));
    assert_eq!(visitor.client.get("/healthz").await.expect("an answer").status, 200);
    let numbers = visitor.client.get("/metrics").await.expect("an answer");
    let numbers = String::from_utf8_lossy(&numbers.body).into_owned();
    assert!(numbers.contains("lastunit_"), "{numbers}");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_dies_in_mid_sale_is_replaced_and_its_items_are_sold_to_the_last_unit() {
    const UNITS: u64 = 800;
    let mut cluster = own_cluster();
    let mut line = line_on(&cluster).await;
    // The one that also says which store this is: the reconciler misses that meanwhile.
    let store = format!("{}:store", line.config.namespace);
    let lost = block_in_place(|| cluster.backend.owner_of(&store)).expect("an owner");
    let mut names = names(&line, &cluster.backend);
    let struck = names.remove(&lost).expect("an item");
    let spared = names.into_values().next().expect("another");
    let (struck, spared) = (sale(&struck, UNITS), sale(&spared, 100_000));
    line.sell(&struck).await;
    line.sell(&spared).await;
    let address = line.ingress().await;
    line.start(Service::Consumer);
    line.start(Service::Consumer);
    line.start(Service::Compensator);
    line.start(Service::Reconciler);
    let at_struck = Throng::begin(address, struck.item.as_str());
    let at_spared = Throng::begin(address, spared.item.as_str());
    at_struck.until_more(PATIENCE).await;
    at_spared.until_more(PATIENCE).await;

    block_in_place(|| cluster.backend.kill(lost)).expect("killed");
    at_spared.until_more(UNDISTURBED).await;
    at_struck.until_told("not_ready").await;
    at_struck.until_more(BACK_WITHIN).await;
    let ready = Buyer::new(address, "visitor").get("/readyz").await;
    assert_eq!(ready.status, 200, "{ready:?}");
    block_in_place(|| cluster.backend.restart(lost)).expect("restarted");

    at_struck.until_told("sold_out").await;
    let known = ["not_ready", "not_warm", "frozen", "unknown_outcome", "sold_out"];
    let problems = at_struck.problems();
    assert!(problems.iter().all(|code| known.contains(&code.as_str())), "{problems:?}");
    let problems = at_spared.problems();
    assert!(problems.iter().all(|code| code == "frozen"), "nothing befell it: {problems:?}");
    for (throng, item) in [(at_struck, &struck.item), (at_spared, &spared.item)] {
        let ends = throng.end().await;
        let books = line.until_lawful(item).await;
        assert_eq!(books.confirmed_units, ends.confirmed, "{item}: {ends:?} {books:?}");
    }
    let back = within(BACK_WITHIN, "whole again", async || {
        block_in_place(|| cluster.backend.until_whole()).ok()
    });
    back.await;
    line.stop_all().await;
}
