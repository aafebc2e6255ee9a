//! One keep-alive HTTP/1.1 connection, as a buyer has it.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderMap;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than the service itself lets anybody wait.
const DEADLINE: Duration = Duration::from_secs(15);

/// A connection; it is replaced when it breaks.
pub struct Client {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// What the service answered.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// No answer: whether the request had an effect is not known.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("cannot connect to {address}: {source}")]
    Connect { address: SocketAddr, source: std::io::Error },
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("no answer within {DEADLINE:?}")]
    Late,
    #[error("not a request: {0}")]
    Request(#[from] hyper::http::Error),
}

impl Client {
    /// A client that connects when it is first used.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, sender: None }
    }

    /// Connects, unless it has a connection that works.
    pub async fn connect(&mut self) -> Result<(), NoAnswer> {
        self.sender().await.map(drop)
    }

    /// Asks for a page.
    pub async fn get(&mut self, path: &str) -> Result<Response, NoAnswer> {
        self.send(Method::GET, path, &[], Vec::new()).await
    }

    /// Sends a request and reads the whole answer, with a bound.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Response, NoAnswer> {
        let mut request = Request::builder().method(method).uri(path).header("host", "lastunit");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        let answer = match timeout(DEADLINE, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(NoAnswer::Late),
        };
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Response, NoAnswer> {
        let response = self.sender().await?.send_request(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Response { status: parts.status, headers: parts.headers, body })
    }

    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, NoAnswer> {
        let works = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !works {
            let address = self.address;
            let connect = |source| NoAnswer::Connect { address, source };
            let stream = TcpStream::connect(address).await.map_err(connect)?;
            stream.set_nodelay(true).map_err(connect)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        Ok(self.sender.as_mut().expect("just connected"))
    }
}
