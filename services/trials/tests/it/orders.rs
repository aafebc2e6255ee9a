//! What can be looked up, by whom, and from where.

use shared::domain::ItemId;
use trials::buyer::Buyer;
use trials::line::{Line, Service, limited, sale};
use trials::messages::request_id;
use trials::proxy::Proxy;
use trials::stack::own_redis;
use trials::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_shown_to_its_buyer_only() {
    let sale = sale("shoe", 5);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let (mut ann, mut bob) = (Buyer::new(address, "ann"), Buyer::new(address, "bob"));
    let bought = ann.buy("shoe", "key-1", 2).await;
    let id = bought.request_id();
    assert_eq!(
        id,
        request_id(&sale.item, "ann", "key-1"),
        "the id is derived, so it never changes"
    );
    assert_eq!(bought.location(), format!("/v1/items/shoe/orders/{id}"));

    for decided in [false, true] {
        if decided {
            line.start(Service::Consumer);
            assert_eq!(ann.final_state(&bought).await, "confirmed");
        }
        let mine = ann.order("shoe", id).await;
        let status = if decided { "confirmed" } else { "reserved" };
        assert_eq!((mine.status, mine.text("status")), (200, status), "{mine:?}");
        assert_eq!((mine.text("item"), mine.body["quantity"].as_u64()), ("shoe", Some(2)));
        assert_eq!(mine.request_id(), id);
        bob.order("shoe", id).await.assert_problem(404, "unknown_order", Some("request_id"));
    }
    let nobody = Buyer::new(address, "not a name").order("shoe", id).await;
    nobody.assert_problem(400, "invalid_buyer", Some("X-Buyer-Id"));
    let never = request_id(&sale.item, "ann", "never-sent");
    ann.order("shoe", never).await.assert_problem(404, "unknown_order", Some("request_id"));
    let nonsense = ann.get("/v1/items/shoe/orders/nonsense").await;
    nonsense.assert_problem(400, "invalid_request_id", Some("request_id"));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_told_the_final_state_is_never_told_reserved_again() {
    let mut line = Line::new().await;
    line.sell(&sale("shoe", 5)).await;
    let (mut of_ingress, mut of_consumer) = (line.config.clone(), line.config.clone());
    let ingress_wire = Proxy::to(&line.config.redis.url).await;
    let consumer_wire = Proxy::to(&line.config.redis.url).await;
    of_ingress.redis.url = of_ingress.redis.url.with_address(ingress_wire.address());
    of_consumer.redis.url = of_consumer.redis.url.with_address(consumer_wire.address());
    let address = line.ingress_with(of_ingress).await;
    line.start_with(Service::Consumer, of_consumer);
    let mut ann = Buyer::new(address, "ann");
    // It starts only where it can compare; by now it has.
    let before = ann.buy("shoe", "before", 1).await;
    assert_eq!(ann.final_state(&before).await, "confirmed");
    // The ledger decides, and Redis does not hear of it.
    consumer_wire.refuse();
    let bought = ann.buy("shoe", "key-1", 1).await;
    until("the ledger has decided", async || {
        line.ledger.find_order(bought.request_id()).await.expect("the ledger")
    })
    .await;

    ingress_wire.refuse();
    let without_redis = ann.get(&bought.location()).await;
    ingress_wire.recover();
    let with_redis = until("ingress sees Redis again", async || {
        Some(ann.get(&bought.location()).await).filter(|answer| answer.status == 200)
    })
    .await;
    assert_eq!(with_redis.text("status"), "reserved");
    without_redis.assert_problem(503, "not_ready", None);

    consumer_wire.recover();
    line.start(Service::Consumer);
    line.start(Service::Reconciler);
    assert_eq!(ann.final_state(&bought).await, "confirmed");
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_shows_its_sale() {
    let sale = limited("shoe", 5, 2);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let mut ann = Buyer::new(address, "ann");

    let shown = ann.get("/v1/items/shoe").await;
    assert_eq!((shown.status, shown.text("status")), (200, "open"), "{shown:?}");
    assert_eq!(shown.text("item"), "shoe");
    let numbers = (shown.body["total"].as_u64(), shown.body["limit_per_buyer"].as_u64());
    assert_eq!(numbers, (Some(5), Some(2)));
    assert_eq!(shown.text("opens_at"), sale.window.opens_at().to_string());
    assert_eq!(shown.text("closes_at"), sale.window.closes_at().to_string());
    ann.get("/v1/items/hat").await.assert_problem(404, "unknown_item", Some("item"));
    ann.get("/v1/items/h%20t").await.assert_problem(400, "invalid_item", Some("item"));
    ann.get("/v1/nothing").await.assert_problem(404, "not_found", None);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_lost_everything_is_rebuilt_with_limits_and_old_keys() {
    let sale = limited("shoe", 10, 2);
    let shoe: &ItemId = &sale.item;
    let (mut line, address) = Line::selling(&sale).await;
    let bought = Buyer::new(address, "ann").buy("shoe", "key-1", 2).await;
    assert_eq!(Buyer::new(address, "ann").final_state(&bought).await, "confirmed");
    assert_eq!(line.assert_law(shoe).await.confirmed_units, 2);
    for service in [Service::Ingress, Service::Consumer, Service::Compensator] {
        line.stop(service).await;
    }

    // The same deployment on a Redis that knows nothing.
    let empty = own_redis();
    line.move_to_redis(&empty.backend.url());
    line.forget_store().await;
    let address = line.ingress().await;
    let mut ann = Buyer::new(address, "ann");

    let found = ann.order("shoe", bought.request_id()).await;
    assert_eq!((found.status, found.text("status")), (200, "confirmed"), "from the ledger");
    let never = request_id(shoe, "ann", "never-sent");
    ann.order("shoe", never).await.assert_problem(503, "not_warm", None);
    ann.buy("shoe", "key-1", 2).await.assert_problem(503, "not_warm", None);
    ann.buy("shoe", "key-2", 1).await.assert_problem(503, "not_warm", None);

    // A command alone does not put another Redis in the place of the lost one.
    let alone = reconciler::bind_first(&line.config, &line.ledger, &line.stock).await;
    assert!(matches!(alone, Err(reconciler::NotBound::Lost { .. })), "{alone:?}");
    line.start(Service::Reconciler);
    line.warm(shoe).await;
    let again = ann.buy("shoe", "key-1", 2).await;
    assert_eq!((again.status, again.text("status")), (200, "confirmed"), "{again:?}");
    ann.buy("shoe", "key-1", 1).await.assert_problem(422, "key_reused", Some("Idempotency-Key"));
    ann.buy("shoe", "key-2", 1).await.assert_problem(409, "limit_reached", None);
    ann.order("shoe", never).await.assert_problem(404, "unknown_order", Some("request_id"));
    line.start(Service::Consumer);
    for number in 0..4 {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        assert_eq!(buyer.buy("shoe", "key-1", 2).await.status, 202);
    }
    Buyer::new(address, "late").buy("shoe", "key-1", 1).await.assert_problem(409, "sold_out", None);
    assert_eq!(line.assert_law(shoe).await.confirmed_units, 10);
    line.stop_all().await;
}
