//! Clients that leave before they are answered.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, limited};
use trials::messages::Post;
use trials::proxy::Proxy;

/// Buys and hangs up after so long; true when an answer came before that.
async fn buy_and_hang_up(address: SocketAddr, buyer: String, patience: Duration) -> bool {
    let body = r#"{"quantity": 1}"#;
    let request = format!(
        "POST /v1/items/shoe/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: {buyer}\r\n\
         Idempotency-Key: key-1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut answer = [0; 1024];
    matches!(timeout(patience, stream.read(&mut answer)).await, Ok(Ok(1..)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_has_an_order_or_has_none_and_never_half_of_one() {
    const BUYERS: u64 = 2_000;
    let sale = limited("shoe", BUYERS, 1);
    let mut line = Line::new().await;
    line.sell(&sale).await;
    // Slow wires, so that people hang up at every step of a purchase.
    let mut config = line.config.clone();
    let redis = Proxy::to(&config.redis.url).await;
    let rabbitmq = Proxy::to(&config.rabbitmq.url).await;
    config.redis.url = config.redis.url.with_address(redis.address());
    config.rabbitmq.url = config.rabbitmq.url.with_address(rabbitmq.address());
    let address = line.ingress_with(config).await;
    redis.delay(Duration::from_millis(8));
    rabbitmq.delay(Duration::from_millis(8));
    line.start(Service::Consumer);
    line.start(Service::Compensator);

    let mut answered = 0;
    for wave in 0..40 {
        let left = at_once((0..50).map(|number| {
            let buyer = format!("buyer-{}", wave * 50 + number);
            buy_and_hang_up(address, buyer, Duration::from_millis(1 + number))
        }))
        .await;
        answered += left.iter().filter(|answered| **answered).count();
    }
    assert!(answered < 1_700, "many have hung up unanswered, and not {answered} were answered");

    // Nobody asks again, and still nothing stays half-done.
    let mut post = Post::of(&line).await;
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let books = line.assert_law(&sale.item).await;
    assert!(books.confirmed_units >= answered as u64, "{books:?}");

    // Those who ask again have one order in the end, and there is exactly one unit for each.
    let again = at_once((0..BUYERS).map(|number| async move {
        Buyer::new(address, format!("buyer-{number}")).buy_patiently("shoe", "key-1", 1).await
    }))
    .await;
    for answer in &again {
        assert!(answer.is_accepted(), "{answer:?}");
    }
    assert_eq!(post.flush().await, Vec::<Vec<u8>>::new());
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (BUYERS, Some(0)));
    line.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_request_takes_nothing() {
    let sale = limited("shoe", 5, 1);
    let (line, address) = Line::selling(&sale).await;
    for part in [
        "POST /v1/items/shoe/or",
        "POST /v1/items/shoe/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: ann\r\n",
        "POST /v1/items/shoe/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: ann\r\n\
         Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"quantity\": ",
        "POST /v1/items/shoe/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: ann\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
         f\r\n{\"quantity\": 1}\r\n",
    ] {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(part.as_bytes()).await.expect("half a request is sent");
        stream.shutdown().await.expect("and no more");
        // Until the service has seen that no more comes.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    assert_eq!(Buyer::new(address, "bob").buy("shoe", "key-1", 1).await.status, 202);
    let books = line.assert_law(&sale.item).await;
    assert_eq!((books.confirmed_units, books.redis_available), (1, Some(4)));
    line.stop_all().await;
}
