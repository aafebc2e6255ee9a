//! `POST /v1/items/{item}/orders` and `GET /v1/items/{item}/orders/{request_id}`.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use shared::telemetry::metrics;

use super::answer::{OrderBody, respond};
use super::input;
use super::problem::{Code, Problem};
use crate::Ingress;
use crate::lookup::LookupError;
use crate::purchase::Purchase;
use crate::surviving::Surviving;

pub(super) async fn buy(
    State(ingress): State<Arc<Ingress>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let answered = answer(ingress, path, request).await;
    answered.inspect_err(|problem| metrics::purchase_answered(problem.code()))
}

async fn answer(
    ingress: Arc<Ingress>,
    path: Result<Path<String>, PathRejection>,
    mut request: Request,
) -> Result<Response, Problem> {
    let headers = std::mem::take(request.headers_mut());
    let body = Bytes::from_request(request, &()).await;
    let purchase = Purchase {
        item: input::item(path)?,
        buyer: input::buyer(&headers)?,
        key: input::key(&headers)?,
        quantity: input::quantity(&headers, body)?,
    };
    let (item, key) = (purchase.item.clone(), purchase.key.clone());
    // This future is dropped when the client hangs up.
    let tasks = ingress.tasks.clone();
    let buying = async move { ingress.purchases.buy(purchase).await };
    let answer = Surviving::new(&tasks, AssertUnwindSafe(buying).catch_unwind()).await;
    let answer = answer.map_err(|_panic| {
        Problem::new(
            Code::InternalError,
            "the purchase may have been accepted; the same key finds out",
        )
    })?;
    Ok(respond(&item, &key, answer))
}

pub(super) async fn show(
    State(ingress): State<Arc<Ingress>>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (item, request_id) = input::item_and_request(path)?;
    let buyer = input::buyer(&headers)?;
    let asked = item.clone();
    // In a task of its own: a call to the ledger must not be dropped half-way.
    let tasks = ingress.tasks.clone();
    let found = tasks
        .spawn(async move { ingress.lookup.find(&asked, &buyer, request_id).await })
        .await
        .map_err(|_panic| Problem::new(Code::InternalError, "the look-up failed"))?;
    match found {
        Ok(Some(order)) => {
            let body = OrderBody::of(request_id, &item, order.quantity, order.decided.as_ref());
            Ok(Json(body).into_response())
        }
        Ok(None) => {
            let detail = format!("this buyer has no order {request_id} of {item}");
            Err(Problem::of_field(Code::UnknownOrder, "request_id", detail))
        }
        Err(error @ LookupError::NotLive) => Err(Problem::new(Code::NotWarm, error.to_string())),
        Err(LookupError::Stock(error)) => {
            tracing::debug!(%error, "cannot look an order up");
            Err(Problem::new(Code::NotReady, "Redis cannot be reached; ask again"))
        }
        Err(LookupError::Ledger(error)) => {
            tracing::debug!(%error, "cannot look an order up");
            Err(Problem::new(Code::NotReady, "the ledger cannot be reached; ask again"))
        }
    }
}
