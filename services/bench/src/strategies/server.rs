//! A rival behind HTTP, as ingress is: the same paths, headers and answers, so that the same buyers can
//! ask either. Each runs on a runtime of its own, as a process would.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use shared::config::Config;
use shared::domain::{BuyerId, IdempotencyKey, ItemId, RequestId};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::database::CONNECTIONS;
use super::purchase::{Outcome, Purchase, Trouble};
use super::rival::{Backends, Design, Rival};

/// A rival that answers. Dropping it stops it.
pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Deserialize)]
struct Body {
    quantity: u32,
}

impl Server {
    /// Connects to the backends and listens on a free port.
    pub async fn start(config: &Config, design: Design) -> anyhow::Result<Self> {
        let (config, (stop, stopped)) = (config.clone(), oneshot::channel());
        let (started, address) = oneshot::channel();
        let thread =
            std::thread::Builder::new().name(design.name().to_owned()).spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(async move {
                    match open(&config, design).await {
                        Ok((listener, address, rival)) => {
                            let _ = started.send(Ok(address));
                            serve(listener, rival, stopped).await;
                        }
                        Err(error) => drop(started.send(Err(error))),
                    }
                });
            })?;
        let address = address.await??;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn open(config: &Config, design: Design) -> anyhow::Result<(TcpListener, SocketAddr, Rival)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let backends = Backends::open(config, CONNECTIONS).await?;
    Ok((listener, address, Rival { design, backends }))
}

async fn serve(listener: TcpListener, rival: Rival, stopped: oneshot::Receiver<()>) {
    let listener = listener.tap_io(|connection| {
        let _: io::Result<()> = connection.set_nodelay(true);
    });
    let router = Router::new().route("/v1/items/{item}/orders", post(buy));
    let router = router.with_state(rival.clone());
    // Buyers have their answers when it is stopped; what is left are idle connections.
    tokio::select! {
        served = axum::serve(listener, router) => drop(served),
        _ = stopped => {}
    }
    rival.backends.database.close().await;
}

async fn buy(
    State(rival): State<Rival>,
    Path(item): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(purchase) = read(&item, &headers, &body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (request_id, quantity) = (purchase.request_id, purchase.quantity);
    // In a task of its own: this future is dropped when the client hangs up.
    let answered = tokio::spawn(async move { rival.purchase(&purchase).await }).await;
    match answered {
        Ok(Ok(Outcome::Confirmed | Outcome::Repeated)) => {
            let body = json!({
                "request_id": request_id, "item": item, "quantity": quantity, "status": "confirmed",
            });
            let location = format!("/v1/items/{item}/orders/{request_id}");
            (StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(body)).into_response()
        }
        Ok(Ok(Outcome::SoldOut)) => {
            let body = json!({ "code": "sold_out", "status": 409, "retryable": false });
            (StatusCode::CONFLICT, Json(body)).into_response()
        }
        Ok(Err(trouble)) => not_now(&trouble),
        Err(_panic) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn not_now(trouble: &Trouble) -> Response {
    let body = json!({
        "code": trouble.code(), "status": 503, "retryable": true, "detail": trouble.to_string(),
    });
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], Json(body)).into_response()
}

/// What ingress reads from a request.
fn read(item: &str, headers: &HeaderMap, body: &Bytes) -> Option<Purchase> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let item: ItemId = item.parse().ok()?;
    let buyer: BuyerId = text("x-buyer-id")?.parse().ok()?;
    let key: IdempotencyKey = text("idempotency-key")?.parse().ok()?;
    let body: Body = serde_json::from_slice(body).ok()?;
    Some(Purchase {
        request_id: RequestId::derive(&buyer, &item, &key).as_uuid(),
        item: item.to_string(),
        buyer: buyer.to_string(),
        quantity: body.quantity.into(),
    })
}
