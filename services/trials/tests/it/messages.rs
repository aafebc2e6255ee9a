//! What consumers and compensators make of messages: good, bad, foreign, repeated, early.

use shared::domain::{EnvironmentId, OrderState, Reservation, ReservationId};
use shared::queue::Route;
use trials::buyer::{Answer, Buyer};
use trials::line::{Line, Service, limited, sale};
use trials::messages::{Post, request_id, reservation, reservation_of};
use trials::until::until;
use uuid::Uuid;

/// Buys, and expects 202.
async fn accepted(buyer: &mut Buyer, key: &str) -> Answer {
    let answer = buyer.buy("shoe", key, 1).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer
}

async fn state_of(line: &Line, reservation: &Reservation) -> Option<OrderState> {
    let found = line.ledger.find_order(reservation.request_id).await;
    found.expect("the ledger").map(|order| order.state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_nobody_can_use_are_set_aside_and_the_good_ones_are_confirmed() {
    let sale = sale("shoe", 10);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let mut post = Post::of(&line).await;
    let route = post.route_of(&sale.item);
    let mine = line.ledger.environment().await.expect("an environment");
    let foreign = EnvironmentId::from_uuid(Uuid::new_v4());
    let good = reservation(&sale.item, "nobody", "key-1", 1);
    let text = |body: Vec<u8>| String::from_utf8(body).expect("JSON");
    let edited = |from: &str, to: &str| {
        let body = text(post.placed_in(mine, std::slice::from_ref(&good)));
        assert!(body.contains(from), "{from} is not in {body}");
        body.replacen(from, to, 1).into_bytes()
    };
    let bad = [
        b"\xff\x00\xfe garbage".to_vec(),
        Vec::new(),
        b"{}".to_vec(),
        br#"{"type":"something.else.v1"}"#.to_vec(),
        post.placed_in(foreign, std::slice::from_ref(&good)),
        edited(r#""item":"shoe""#, r#""item":"sh\u0000e""#),
        edited(r#""buyer":"nobody""#, r#""buyer":"no body""#),
        edited(r#""quantity":1"#, r#""quantity":-1"#),
        edited(r#""quantity":1"#, r#""quantity":"1""#),
        edited(r#""quantity":1"#, r#""quantity":9223372036854775808"#),
    ];

    let mut buyers = Vec::new();
    for (number, body) in bad.iter().enumerate() {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let answer = accepted(&mut buyer, "key-1").await;
        buyers.push((buyer, answer));
        post.publish(route, body.clone()).await;
    }
    line.start(Service::Consumer);
    line.start(Service::Compensator);

    for (buyer, answer) in &mut buyers {
        assert_eq!(buyer.final_state(answer).await, "confirmed");
    }
    assert_eq!(post.flush().await, bad, "exactly as they were, in their order");
    assert_eq!(state_of(&line, &good).await, None, "nothing of a bad message was sold");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (10, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_reservation_does_not_take_its_message_along() {
    let (shoe, hat) = (sale("shoe", 10), sale("hat", 10));
    let mut line = Line::new().await;
    line.sell(&shoe).await;
    line.put(&hat).await;
    let mut post = Post::of(&line).await;
    let decided = reservation(&shoe.item, "ann", "key-1", 1);
    line.ledger.commit(std::slice::from_ref(&decided)).await.expect("an order");

    let good =
        [reservation(&shoe.item, "bob", "key-1", 1), reservation(&shoe.item, "carol", "key-1", 2)];
    let unknown = reservation(&"gone".parse().expect("an item"), "bob", "key-1", 1);
    // The same ids as a decided order, for other goods.
    let mismatch = Reservation { item: hat.item.clone(), ..decided.clone() };
    let message = [good[0].clone(), unknown.clone(), mismatch.clone(), good[1].clone()];
    post.publish(post.route_of(&shoe.item), {
        let environment = line.ledger.environment().await.expect("an environment");
        post.placed_in(environment, &message)
    })
    .await;
    line.start(Service::Consumer);
    line.start(Service::Compensator);

    let letters = post.flush().await;
    let environment = line.ledger.environment().await.expect("an environment");
    let alone =
        |reservation: &Reservation| post.placed_in(environment, std::slice::from_ref(reservation));
    assert_eq!(letters, [alone(&unknown), alone(&mismatch)], "each alone, with all it said");
    for reservation in good.iter().chain([&decided]) {
        assert_eq!(state_of(&line, reservation).await, Some(OrderState::Confirmed));
    }
    let orders = line.ledger.count_orders(&shoe.item).await.expect("the orders");
    assert_eq!((orders.confirmed, orders.confirmed_units), (3, 4));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_later_release_is_left_for_its_consumers() {
    let sale = sale("shoe", 10);
    let (line, address) = Line::selling(&sale).await;
    let mut post = Post::of(&line).await;
    let later = br#"{"type":"reservations.placed.v2","surprise":true}"#.to_vec();
    post.publish(post.route_of(&sale.item), later.clone()).await;
    post.publish(Route::Compensations, br#"{"type":"compensations.restore.v2"}"#.to_vec()).await;

    let mut ann = Buyer::new(address, "ann");
    let answer = accepted(&mut ann, "key-1").await;
    assert_eq!(ann.final_state(&answer).await, "confirmed");
    // Not a dead letter, however often it comes round.
    for _ in 0..3 {
        assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    }
    assert_eq!(line.assert_law(&sale.item).await.confirmed_units, 1);
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_again_changes_nothing() {
    let sale = limited("shoe", 10, 3);
    let (mut line, address) = Line::selling(&sale).await;
    let mut post = Post::of(&line).await;
    let mut ann = Buyer::new(address, "ann");
    let answer = accepted(&mut ann, "key-1").await;
    assert_eq!(ann.final_state(&answer).await, "confirmed");
    let copy = reservation_of(&line, &sale.item, "ann", "key-1").await;

    // Alone, twice in one message, and to two consumers.
    post.place(std::slice::from_ref(&copy)).await;
    post.place(&[copy.clone(), copy.clone()]).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    line.start(Service::Consumer);
    for _ in 0..20 {
        post.place(std::slice::from_ref(&copy)).await;
    }
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());

    assert_eq!(ann.order("shoe", answer.request_id()).await.text("status"), "confirmed");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(9)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_reservation_of_a_confirmed_request_gives_nothing_back_and_takes_nothing() {
    let sale = sale("shoe", 10);
    let (line, address) = Line::selling(&sale).await;
    let mut post = Post::of(&line).await;
    let mut ann = Buyer::new(address, "ann");
    let answer = accepted(&mut ann, "key-1").await;
    assert_eq!(ann.final_state(&answer).await, "confirmed");
    let mut surplus = reservation_of(&line, &sale.item, "ann", "key-1").await;
    surplus.reservation_id = ReservationId::mint();

    post.place(&[surplus]).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());

    assert_eq!(ann.order("shoe", answer.request_id()).await.text("status"), "confirmed");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(9)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_order_is_refused_after_its_compensation_overtook_it() {
    let sale = limited("shoe", 2, 1);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let mut post = Post::of(&line).await;
    let mut ann = Buyer::new(address, "ann");
    // Its message waits: there is no consumer.
    let answer = accepted(&mut ann, "key-1").await;
    let held = reservation_of(&line, &sale.item, "ann", "key-1").await;

    line.start(Service::Compensator);
    for _ in 0..3 {
        post.compensate(&held).await;
    }
    assert_eq!(ann.final_state(&answer).await, "expired");
    assert_eq!(line.available(&sale.item).await, 2, "the unit is back");
    let expired = Some(OrderState::Expired("compensated".parse().expect("a reason")));
    assert_eq!(state_of(&line, &held).await, expired);
    let again = ann.buy("shoe", "key-1", 1).await;
    assert_eq!((again.status, again.text("status")), (200, "expired"), "{again:?}");

    // Two others buy both units before the late message is read.
    for name in ["bob", "carol"] {
        accepted(&mut Buyer::new(address, name), "key-1").await;
    }
    line.start(Service::Consumer);
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    assert_eq!(state_of(&line, &held).await, expired, "a final state never changes");
    assert_eq!(ann.order("shoe", answer.request_id()).await.text("status"), "expired");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (2, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compensation_before_its_reservation_keeps_the_request_from_being_sold() {
    // A request that no Redis and no ledger has heard of yet.
    let sale = sale("shoe", 2);
    let (line, address) = Line::selling(&sale).await;
    let mut post = Post::of(&line).await;
    let early = reservation(&sale.item, "ann", "key-1", 1);
    post.compensate(&early).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    post.place(std::slice::from_ref(&early)).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());

    let mut ann = Buyer::new(address, "ann");
    let found = ann.order("shoe", early.request_id).await;
    assert_eq!((found.status, found.text("status")), (200, "expired"), "{found:?}");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (0, Some(2)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compensation_of_a_sold_reservation_is_refused_and_set_aside() {
    let sale = sale("shoe", 5);
    let (line, address) = Line::selling(&sale).await;
    let mut post = Post::of(&line).await;
    let mut ann = Buyer::new(address, "ann");
    let answer = accepted(&mut ann, "key-1").await;
    assert_eq!(ann.final_state(&answer).await, "confirmed");
    let sold = reservation_of(&line, &sale.item, "ann", "key-1").await;

    post.compensate(&sold).await;
    let garbage = b"not a compensation".to_vec();
    post.publish(Route::Compensations, garbage.clone()).await;
    let nowhere = reservation(&"gone".parse().expect("an item"), "ann", "key-1", 1);
    post.compensate(&nowhere).await;

    let letters = post.flush().await;
    let expected = [post.compensation_of(&sold), garbage, post.compensation_of(&nowhere)];
    assert_eq!(letters, expected);
    assert_eq!(ann.order("shoe", answer.request_id()).await.text("status"), "confirmed");
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(4)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_are_the_units_of_the_hold_whatever_the_message_says() {
    let sale = sale("shoe", 10);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    let address = line.ingress().await;
    let mut post = Post::of(&line).await;
    let mut ann = Buyer::new(address, "ann");
    let answer = accepted(&mut ann, "key-1").await;
    let mut held = reservation_of(&line, &sale.item, "ann", "key-1").await;
    held.quantity = shared::domain::Quantity::new(5).expect("five");

    line.start(Service::Compensator);
    post.compensate(&held).await;
    assert_eq!(ann.final_state(&answer).await, "expired");
    until("the unit is back", async || (line.available(&sale.item).await == 10).then_some(()))
        .await;
    line.start(Service::Consumer);
    let _ = post.flush().await;
    assert_eq!(line.available(&sale.item).await, 10);
    assert_eq!(line.books(&sale.item).await.confirmed_units, 0);
    assert_eq!(request_id(&sale.item, "ann", "key-1"), held.request_id);
    line.stop_all().await;
}
