//! The HTTP interface: routes, what is read from a request, what is written into a response.

mod answer;
mod health;
mod input;
mod items;
mod orders;
mod problem;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::routing::{get, post};
use shared::config::limits::BODY_BYTES;
use shared::telemetry::metrics_page;

use self::problem::{Code, Problem};
use crate::Ingress;

pub(crate) fn router(ingress: Arc<Ingress>) -> Router {
    Router::new()
        .route("/v1/items/{item}", get(items::show))
        .route("/v1/items/{item}/orders", post(orders::buy))
        .route("/v1/items/{item}/orders/{request_id}", get(orders::show))
        .route("/metrics", get(metrics_page))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(|| async {
            Problem::new(Code::MethodNotAllowed, "this path does not take that method")
        })
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(ingress)
}

async fn no_such_path(path: Uri) -> Problem {
    if path.path().starts_with("/v1/items//") {
        return input::missing_item();
    }
    Problem::new(Code::NotFound, "there is nothing at this path; see /v1/items/{item}/orders")
}
