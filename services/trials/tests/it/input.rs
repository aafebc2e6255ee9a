//! What is not a purchase is refused with the name of the field, before anything is taken.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::Method;
use trials::buyer::{Answer, Buyer};
use trials::line::{Line, sale};
use trials::messages::{Placed, request_id};

const JSON: (&str, &str) = ("content-type", "application/json");
const ANN: (&str, &str) = ("x-buyer-id", "ann");
const GOOD: &str = r#"{"quantity": 1}"#;
const PATH: &str = "/v1/items/shoe/orders";

/// Sends something on a connection of its own, because a refused body may end it.
async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Vec<u8>>,
) -> Answer {
    let mut buyer = Buyer::new(address, "ann");
    let sent = buyer.client.send(Method::POST, path, headers, body.into()).await;
    Answer::from(sent.unwrap_or_else(|error| panic!("{path} {headers:?}: {error}")))
}

/// A shop, and the check that all that bad input did nothing.
struct Shop {
    line: Line,
    address: SocketAddr,
    placed: Placed,
}

impl Shop {
    async fn open() -> Self {
        let mut line = Line::new().await;
        line.sell(&sale("shoe", 5)).await;
        let address = line.ingress().await;
        let placed = Placed::of(&line);
        Self { line, address, placed }
    }

    /// One good purchase is the first thing that the broker hears of, and all that Redis holds.
    async fn assert_untouched(mut self) {
        let item = "shoe".parse().expect("an item");
        let good = Buyer::new(self.address, "good").buy("shoe", "key-1", 1).await;
        assert_eq!(good.status, 202, "{good:?}");
        let placed = self.placed.next().await;
        let ids: Vec<_> = placed.iter().map(|reservation| reservation.request_id).collect();
        assert_eq!(ids, [request_id(&item, "good", "key-1")]);
        let redis = self.line.snapshot(&item).await;
        assert_eq!((redis.available, redis.held), (4, 1));
        self.line.stop_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quantity_that_is_no_whole_number_of_units_is_refused() {
    let shop = Shop::open().await;
    for quantity in [
        "0",
        "-1",
        "-5",
        "-0",
        "1.5",
        "1.0",
        "1e3",
        "1E0",
        "\"1\"",
        "\" 1 \"",
        "\"0x10\"",
        "null",
        "true",
        "[1]",
        "{}",
        "1000001",
        "2147483647",
        "2147483648",
        "4294967297",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e309",
    ] {
        let body = format!(r#"{{"quantity": {quantity}}}"#);
        let answer = post(shop.address, PATH, &[JSON, ANN], body).await;
        // A number that does not fit into JSON's own numbers cannot be read at all.
        match quantity {
            "1e309" => answer.assert_problem(400, "invalid_body", Some("body")),
            _ => answer.assert_problem(422, "invalid_field", Some("quantity")),
        }
    }
    for (body, field) in [
        ("{}", "quantity"),
        (r#"{"quantity": 1, "quantity": 1}"#, "quantity"),
        (r#"{"quantity": 1, "quantity": 2}"#, "quantity"),
        (r#"{"Quantity": 1}"#, "Quantity"),
        (r#"{"quantity": 1, "buyer": "bob"}"#, "buyer"),
        (r#"{"quantity": 1, "": 1}"#, ""),
        (r#"{"user_id": "bob", "quantity": 1}"#, "user_id"),
    ] {
        let answer = post(shop.address, PATH, &[JSON, ANN], body).await;
        answer.assert_problem(422, "invalid_field", Some(field));
    }
    shop.assert_untouched().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_cannot_be_read_is_refused() {
    let shop = Shop::open().await;
    let deep = "[".repeat(2_000);
    for body in [
        "",
        " ",
        "{",
        "[]",
        "[1]",
        "1",
        "null",
        "\"quantity\"",
        "quantity=1",
        "{'quantity': 1}",
        r#"{"quantity": 1"#,
        r#"{"quantity": 01}"#,
        r#"{"quantity": +1}"#,
        r#"{"quantity": NaN}"#,
        r#"{"quantity": 0x10}"#,
        r#"{"quantity": 1,}"#,
        "{\"quantity\": 1\0}",
        &deep,
        "\u{feff}{\"quantity\": 1}",
    ] {
        let answer = post(shop.address, PATH, &[JSON, ANN], body).await;
        answer.assert_problem(400, "invalid_body", Some("body"));
    }
    let answer = post(shop.address, PATH, &[JSON, ANN], &b"{\"quantity\xff\": 1}"[..]).await;
    answer.assert_problem(400, "invalid_body", Some("body"));

    for size in [5_000, 1_000_000] {
        let padded = format!(r#"{{"quantity": 1{}}}"#, " ".repeat(size));
        let answer = post(shop.address, PATH, &[JSON, ANN], padded).await;
        answer.assert_problem(413, "body_too_large", Some("body"));
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", ""]
    {
        let answer = post(shop.address, PATH, &[("content-type", kind), ANN], GOOD).await;
        answer.assert_problem(415, "unsupported_media_type", Some("Content-Type"));
    }
    let answer = post(shop.address, PATH, &[ANN], GOOD).await;
    answer.assert_problem(415, "unsupported_media_type", Some("Content-Type"));
    shop.assert_untouched().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_the_json_object_is_refused() {
    let shop = Shop::open().await;
    for body in [r#"{"quantity": 1} x"#, r#"{"quantity": 1}{"quantity": 1}"#, r#"{"quantity": 1}}"#]
    {
        let answer = post(shop.address, PATH, &[JSON, ANN], body).await;
        answer.assert_problem(400, "invalid_body", Some("body"));
    }
    shop.assert_untouched().await;
}

/// Percent-encoded, so that it arrives as it is whatever it holds.
fn encoded(text: &[u8]) -> String {
    text.iter().map(|byte| format!("%{byte:02X}")).collect()
}

/// Neither an item nor a buyer can be called so.
fn bad_names() -> Vec<Vec<u8>> {
    let (long, very_long) = ("x".repeat(65), "x".repeat(300));
    [
        "a\0", "a b", " a", "a ", "{a}", "a{", "a:b", "*", "\"a\"", "'a'", "a/b", "a\\b", "a\nb",
        "a;b", "库存", "é", &long, &very_long,
    ]
    .map(|name| name.as_bytes().to_vec())
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_cannot_be_is_refused() {
    let shop = Shop::open().await;
    let mut names: Vec<_> = bad_names().iter().map(|name| encoded(name)).collect();
    names.extend(["", "%ff%fe", "..%2f..", "%"].map(str::to_owned));
    let mut client = Buyer::new(shop.address, "ann");
    for name in names {
        let path = format!("/v1/items/{name}/orders");
        let answer = post(shop.address, &path, &[JSON, ANN], GOOD).await;
        answer.assert_problem(400, "invalid_item", Some("item"));
        let shown = client.get(&format!("/v1/items/{name}")).await;
        if !name.is_empty() {
            shown.assert_problem(400, "invalid_item", Some("item"));
        }
    }
    shop.assert_untouched().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_who_is_nobody_is_refused() {
    let shop = Shop::open().await;
    let answer = post(shop.address, PATH, &[JSON], GOOD).await;
    answer.assert_problem(401, "unauthenticated", Some("X-Buyer-Id"));
    // HTTP itself takes spaces around a header's value away, and neither NUL nor line feed travels.
    let sendable = |name: &[u8]| !name.iter().any(|byte| matches!(byte, 0 | b'\n'));
    let mut names = bad_names();
    names.retain(|name| sendable(name) && *name == name.trim_ascii());
    names.push(Vec::new());
    for name in names {
        // As the bytes are, because the client library is stricter than some clients are.
        let answer = raw(shop.address, &[b"X-Buyer-Id: ", &name[..]].concat()).await;
        answer.assert_problem(400, "invalid_buyer", Some("X-Buyer-Id"));
    }
    let twice = post(shop.address, PATH, &[JSON, ANN, ("x-buyer-id", "bob")], GOOD).await;
    twice.assert_problem(400, "invalid_buyer", Some("X-Buyer-Id"));
    shop.assert_untouched().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_no_key_is_refused() {
    let shop = Shop::open().await;
    let long = "k".repeat(129);
    for key in ["", "a b", "a\tb", "é", "库", &long] {
        let header = format!("X-Buyer-Id: ann\r\nIdempotency-Key: {key}");
        let answer = raw(shop.address, header.as_bytes()).await;
        answer.assert_problem(400, "invalid_key", Some("Idempotency-Key"));
    }
    let two = [JSON, ANN, ("idempotency-key", "a"), ("idempotency-key", "b")];
    let answer = post(shop.address, PATH, &two, GOOD).await;
    answer.assert_problem(400, "invalid_key", Some("Idempotency-Key"));
    shop.assert_untouched().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_method_is_refused_as_a_problem() {
    let shop = Shop::open().await;
    let mut ann = Buyer::new(shop.address, "ann");
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::GET] {
        let sent = ann.client.send(method, PATH, &[JSON, ANN], Vec::new()).await;
        Answer::from(sent.expect("an answer")).assert_problem(405, "method_not_allowed", None);
    }
    shop.assert_untouched().await;
}

/// Sends a good purchase but for these header lines, byte by byte as they are.
async fn raw(address: SocketAddr, header: &[u8]) -> Answer {
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n");
    let length = format!("\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{GOOD}", GOOD.len());
    let request: Arc<[u8]> = [head.as_bytes(), header, length.as_bytes()].concat().into();
    trials::buyer::raw(address, &request).await
}
