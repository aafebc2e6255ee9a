//! Turns what a purchase came to into a response.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use shared::domain::{IdempotencyKey, ItemId, OrderState, Quantity, RequestId};
use shared::stock::Refusal;
use shared::telemetry::metrics;

use super::input::KEY;
use super::problem::{Code, Problem};
use crate::purchase::{Answer, Unavailable};

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A purchase, as its buyer sees it.
#[derive(Serialize)]
pub(super) struct OrderBody {
    request_id: String,
    item: String,
    quantity: u64,
    /// `reserved`, then `confirmed`, `rejected` or `expired`.
    status: &'static str,
    /// Why it was rejected, or expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved_at: Option<String>,
}

impl OrderBody {
    pub(super) fn of(
        request_id: RequestId,
        item: &ItemId,
        quantity: Quantity,
        decided: Option<&OrderState>,
    ) -> Self {
        let (status, reason) = match decided {
            None => ("reserved", None),
            Some(OrderState::Confirmed) => ("confirmed", None),
            Some(OrderState::Rejected(reason)) => ("rejected", Some(reason.to_string())),
            Some(OrderState::Expired(reason)) => ("expired", Some(reason.to_string())),
        };
        Self {
            request_id: request_id.to_string(),
            item: item.to_string(),
            quantity: quantity.units(),
            status,
            reason,
            reserved_at: None,
        }
    }
}

/// The response to a purchase request.
pub(super) fn respond(item: &ItemId, key: &IdempotencyKey, answer: Answer) -> Response {
    let answered = match answer {
        Answer::Accepted { reservation, replayed } => {
            let mut body = OrderBody::of(reservation.request_id, item, reservation.quantity, None);
            body.reserved_at = Some(reservation.reserved_at.to_string());
            let code = if replayed { "replayed" } else { "reserved" };
            Ok((code, order(StatusCode::ACCEPTED, body, replayed)))
        }
        Answer::Decided { request_id, quantity, state } => {
            let body = OrderBody::of(request_id, item, quantity, Some(&state));
            Ok(("decided", order(StatusCode::OK, body, true)))
        }
        Answer::UnknownItem => Err(unknown_item(item)),
        Answer::Refused(refusal) => Err(refused(item, refusal)),
        Answer::Unavailable(unavailable) => Err(not_now(unavailable)),
    };
    let (code, mut response) =
        answered.unwrap_or_else(|problem| (problem.code(), problem.into_response()));
    metrics::purchase_answered(code);
    if let Ok(key) = HeaderValue::from_str(key.as_str()) {
        response.headers_mut().insert(KEY, key);
    }
    response
}

pub(super) fn unknown_item(item: &ItemId) -> Problem {
    Problem::of_field(Code::UnknownItem, "item", format!("there is no item {item}"))
}

fn order(status: StatusCode, body: OrderBody, replayed: bool) -> Response {
    let location = format!("/v1/items/{}/orders/{}", body.item, body.request_id);
    let mut response = (status, Json(body)).into_response();
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::from_str(&location) {
        headers.insert(header::LOCATION, location);
    }
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn refused(item: &ItemId, refusal: Refusal) -> Problem {
    match refusal {
        Refusal::KeyReused => Problem::of_field(
            Code::KeyReused,
            KEY,
            "this key was used for another quantity; take a new key for a new purchase",
        ),
        Refusal::NotWarm => Problem::new(
            Code::NotWarm,
            format!("{item} is not warmed up yet; try the same key again"),
        ),
        Refusal::Frozen => Problem::new(
            Code::Frozen,
            format!("{item} is being corrected, nothing was taken; try the same key again"),
        ),
        Refusal::Paused => Problem::new(
            Code::Paused,
            format!("the sale of {item} is paused, nothing was taken; try the same key later"),
        ),
        Refusal::NotOpen => Problem::new(Code::NotOpen, format!("{item} is not on sale yet")),
        Refusal::Ended => Problem::new(Code::Ended, format!("the sale of {item} is over")),
        Refusal::LimitReached => Problem::new(
            Code::LimitReached,
            format!("with this purchase the buyer would have more of {item} than the limit"),
        ),
        Refusal::SoldOut => {
            Problem::new(Code::SoldOut, format!("fewer of {item} are left than were asked for"))
        }
    }
}

/// Says which backend is away, not where it is: buyers read this. The log and `/readyz` say more.
fn not_now(unavailable: Unavailable) -> Problem {
    match unavailable {
        Unavailable::Catalog => catalog_not_read(),
        Unavailable::Redis => Problem::new(
            Code::NotReady,
            "Redis cannot be reached or is full, nothing was taken; try the same key again",
        ),
        Unavailable::NotCompared => Problem::new(
            Code::NotReady,
            "Redis has restarted and is being compared with the ledger, nothing was taken; try the same key again",
        ),
        Unavailable::Broker => Problem::new(
            Code::BrokerUnavailable,
            "RabbitMQ does not take orders right now; try the same key again",
        ),
        Unavailable::NoAnswer(backend) => Problem::new(
            Code::UnknownOutcome,
            format!(
                "{backend} did not answer, so the purchase may have been accepted; the same key finds out"
            ),
        ),
        Unavailable::Overloaded => {
            Problem::new(Code::Overloaded, "too many purchases wait; try the same key again")
        }
    }
}

pub(super) fn catalog_not_read() -> Problem {
    Problem::new(
        Code::NotReady,
        "it is not known yet what is on sale: this ingress still waits for its backends",
    )
}
