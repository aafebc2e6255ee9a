//! A handler that does nothing, on the same HTTP library and with the same settings as ingress.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::Context;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Router, response::IntoResponse};
use tokio::net::TcpListener;

/// Where it answers.
pub(crate) const PATH: &str = "/v1/items/{item}/orders";

/// Answers until it is told to stop. It takes the body, as ingress has to.
pub async fn serve(
    address: SocketAddr,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let answer = |_body: Bytes| async {
        ([(CONTENT_TYPE, "application/json")], r#"{"status":"nothing"}"#).into_response()
    };
    let router = Router::new().route(PATH, post(answer));
    axum::serve(listener, router).with_graceful_shutdown(stop).await?;
    Ok(())
}
