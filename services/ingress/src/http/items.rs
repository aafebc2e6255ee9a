//! `GET /v1/items/{item}`: the sale.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use shared::domain::UnixMillis;

use super::answer::{catalog_not_read, unknown_item};
use super::input;
use super::problem::Problem;
use crate::Ingress;
use crate::catalog::Entry;

#[derive(Serialize)]
struct ItemBody {
    item: String,
    /// `not_open`, `open`, `paused` or `ended`, by the clock of this process.
    status: &'static str,
    opens_at: String,
    closes_at: String,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_per_buyer: Option<u64>,
}

pub(super) async fn show(
    State(ingress): State<Arc<Ingress>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let item = input::item(path)?;
    let found = match ingress.catalog.find(&item) {
        Entry::Item { item, .. } => item,
        Entry::Unknown => return Err(unknown_item(&item)),
        Entry::NotRead => return Err(catalog_not_read()),
    };
    let sale = &found.sale;
    let now = UnixMillis::from(SystemTime::now());
    let status = if now < sale.window.opens_at() {
        "not_open"
    } else if now >= sale.window.closes_at() {
        "ended"
    } else if found.pause.is_some() {
        "paused"
    } else {
        "open"
    };
    let body = ItemBody {
        item: item.to_string(),
        status,
        opens_at: sale.window.opens_at().to_string(),
        closes_at: sale.window.closes_at().to_string(),
        total: sale.total,
        limit_per_buyer: sale.limit_per_buyer,
    };
    Ok(Json(body).into_response())
}
