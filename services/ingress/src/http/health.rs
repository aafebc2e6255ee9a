//! `/healthz`: this process runs. `/readyz`: it can sell.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::Ingress;

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    /// `ok`, or what is wrong.
    checks: BTreeMap<&'static str, String>,
}

pub(super) async fn alive() -> &'static str {
    "ok\n"
}

pub(super) async fn ready(State(ingress): State<Arc<Ingress>>) -> Response {
    let troubles = [
        ("redis", ingress.stock.probe().await.err().map(|error| error.to_string())),
        ("rabbitmq", ingress.publisher.trouble()),
        ("catalog", ingress.catalog.trouble()),
    ];
    let ready = troubles.iter().all(|(_, trouble)| trouble.is_none());
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks = troubles.map(|(name, trouble)| (name, trouble.unwrap_or_else(|| "ok".to_owned())));
    (status, Json(Readiness { ready, checks: checks.into() })).into_response()
}
