//! Somebody who buys over HTTP, and what they are told.

use std::future::Future;
use std::net::SocketAddr;

use futures_util::future::join_all;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use load::client::{Client, NoAnswer, Response};
use serde_json::Value;
use shared::domain::RequestId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::until::{PATIENCE, Waiting};

/// A buyer with a connection of their own.
pub struct Buyer {
    pub client: Client,
    pub name: String,
}

/// What the service said.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Buyer {
    pub fn new(address: SocketAddr, name: impl Into<String>) -> Self {
        Self { client: Client::new(address), name: name.into() }
    }

    /// Buys once, and expects to be answered.
    pub async fn buy(&mut self, item: &str, key: &str, quantity: u32) -> Answer {
        self.try_buy(item, key, quantity).await.expect("an answer")
    }

    /// Buys once.
    pub async fn try_buy(
        &mut self,
        item: &str,
        key: &str,
        quantity: u32,
    ) -> Result<Answer, NoAnswer> {
        let headers = [
            ("content-type", "application/json"),
            ("x-buyer-id", self.name.as_str()),
            ("idempotency-key", key),
        ];
        let path = format!("/v1/items/{item}/orders");
        let body = format!(r#"{{"quantity": {quantity}}}"#).into_bytes();
        self.client.send(Method::POST, &path, &headers, body).await.map(Answer::from)
    }

    /// Buys as a good client does: on a 503 and without an answer, the same key again.
    pub async fn buy_patiently(&mut self, item: &str, key: &str, quantity: u32) -> Answer {
        let waiting = Waiting::for_at_most(PATIENCE);
        loop {
            match self.try_buy(item, key, quantity).await {
                Ok(answer) if answer.status != 503 => return answer,
                _ => waiting.a_moment("an answer other than 503").await,
            }
        }
    }

    /// Asks for something as this buyer, and expects to be answered.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.try_get(path).await.expect("an answer")
    }

    /// Asks for something as this buyer.
    pub async fn try_get(&mut self, path: &str) -> Result<Answer, NoAnswer> {
        let headers = [("x-buyer-id", self.name.as_str())];
        let answer = self.client.send(Method::GET, path, &headers, Vec::new()).await;
        answer.map(Answer::from)
    }

    /// Looks an order up.
    pub async fn order(&mut self, item: &str, request_id: RequestId) -> Answer {
        self.get(&format!("/v1/items/{item}/orders/{request_id}")).await
    }

    /// Follows an accepted order until it is final, and says how it ended.
    pub async fn final_state(&mut self, accepted: &Answer) -> String {
        let path = accepted.location();
        let waiting = Waiting::for_at_most(PATIENCE);
        loop {
            let found = self.get(&path).await;
            assert_eq!(found.status, 200, "an accepted order is always found: {found:?}");
            if found.text("status") != "reserved" {
                return found.text("status").to_owned();
            }
            waiting.a_moment("the order is final").await;
        }
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        let body = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        Self { status: response.status.as_u16(), headers: response.headers, body }
    }
}

impl Answer {
    /// A field of the body; empty when it is not there.
    pub fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    pub fn request_id(&self) -> RequestId {
        self.text("request_id").parse().expect("a request id")
    }

    /// Where the order is found.
    pub fn location(&self) -> String {
        self.header(LOCATION.as_str()).expect("a Location").to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Is this the answer to a request that was known?
    pub fn is_replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// Accepted now, or accepted and decided before.
    pub fn is_accepted(&self) -> bool {
        let status = self.text("status");
        match self.status {
            202 => status == "reserved",
            200 => status == "confirmed",
            _ => false,
        }
    }

    /// Checks that this is a problem as the interface promises them.
    pub fn assert_problem(&self, status: u16, code: &str, field: Option<&str>) {
        assert_eq!((self.status, self.text("code")), (status, code), "{self:?}");
        assert_eq!(
            self.header(CONTENT_TYPE.as_str()),
            Some("application/problem+json"),
            "{self:?}"
        );
        assert_eq!(self.body["status"], status, "{self:?}");
        assert_eq!(self.body["field"].as_str(), field, "{self:?}");
        assert!(!self.text("title").is_empty() && !self.text("detail").is_empty(), "{self:?}");
        assert_eq!(self.body["retryable"], status == 503, "{self:?}");
        assert_eq!(self.header(RETRY_AFTER.as_str()).is_some(), status == 503, "{self:?}");
    }
}

/// Sends bytes as they are, and reads the answer until the service closes the connection.
pub async fn raw(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request).await.expect("the request is sent");
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an answer");
    read.expect("the whole answer");
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let headers = lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| {
        let name: HeaderName = name.parse().expect("a name");
        (name, value.parse::<HeaderValue>().expect("a value"))
    });
    Answer {
        status: status.parse().expect("a status"),
        headers: headers.collect(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

/// Does something many times at once, each in a task of its own.
pub async fn at_once<T, F>(many: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = many.into_iter().map(tokio::spawn).collect();
    join_all(tasks).await.into_iter().map(|done| done.expect("no panic")).collect()
}
