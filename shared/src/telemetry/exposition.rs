//! Shows the numbers of this process, and whether it is at work, to whoever asks over HTTP.

use std::io;
use std::net::SocketAddr;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::{metrics, readiness};
use crate::config;

/// What Prometheus calls its text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The address of `metrics.listen` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for metrics: {source}; metrics.listen sets another address")]
pub struct CannotExpose {
    address: SocketAddr,
    source: io::Error,
}

/// The page `/metrics`, to be put beside other pages.
pub async fn metrics_page() -> impl IntoResponse {
    ([(CONTENT_TYPE, TEXT)], metrics::render())
}

/// The page `/readyz`: 503 with what is wrong while the process cannot do its work.
async fn readiness_page() -> impl IntoResponse {
    let troubles = readiness::troubles();
    let ready = troubles.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(serde_json::json!({ "ready": ready, "checks": troubles })))
}

/// Begins to count, and serves `/metrics` and `/readyz` for as long as the process runs, if it is said where.
pub async fn expose(config: &config::Metrics) -> Result<(), CannotExpose> {
    metrics::init();
    let Some(address) = config.listen else { return Ok(()) };
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| CannotExpose { address, source })?;
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!("serving metrics on http://{address}/metrics");
    tokio::spawn(async move {
        let pages = Router::new()
            .route("/metrics", get(metrics_page))
            .route("/readyz", get(readiness_page));
        if let Err(error) = axum::serve(listener, pages).await {
            tracing::warn!(%error, "metrics are served no more");
        }
    });
    Ok(())
}
