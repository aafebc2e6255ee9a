//! Errors, as problem+json (RFC 9457), with a stable code for programs. This table is the only
//! place that knows which status a code has.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use shared::config::limits::RETRY_AFTER;

/// Everything that can be answered instead of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    BodyTooLarge,
    BrokerUnavailable,
    Ended,
    Frozen,
    InternalError,
    InvalidBody,
    InvalidBuyer,
    InvalidField,
    InvalidItem,
    InvalidKey,
    InvalidRequestId,
    KeyReused,
    LimitReached,
    MethodNotAllowed,
    NotFound,
    NotOpen,
    NotReady,
    NotWarm,
    Overloaded,
    Paused,
    SoldOut,
    Unauthenticated,
    UnknownItem,
    UnknownOrder,
    UnknownOutcome,
    UnsupportedMediaType,
}

/// An answer that is not an order.
#[derive(Debug)]
pub(super) struct Problem {
    code: Code,
    detail: String,
    field: Option<String>,
}

#[derive(Serialize)]
struct Body {
    r#type: String,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: String,
    /// True when the same request, with the same key, may succeed later.
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

impl Code {
    /// Status, stable name, and title.
    fn row(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "Body too large")
            }
            Self::BrokerUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "broker_unavailable",
                "Orders cannot be passed on right now",
            ),
            Self::Ended => (StatusCode::GONE, "ended", "The sale is over"),
            Self::Frozen => {
                (StatusCode::SERVICE_UNAVAILABLE, "frozen", "The sale stands still for a moment")
            }
            Self::InternalError => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Something went wrong here")
            }
            Self::InvalidBody => {
                (StatusCode::BAD_REQUEST, "invalid_body", "The body cannot be read")
            }
            Self::InvalidBuyer => (StatusCode::BAD_REQUEST, "invalid_buyer", "Invalid buyer"),
            Self::InvalidField => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", "Invalid field")
            }
            Self::InvalidItem => (StatusCode::BAD_REQUEST, "invalid_item", "Invalid item id"),
            Self::InvalidKey => (StatusCode::BAD_REQUEST, "invalid_key", "Invalid idempotency key"),
            Self::InvalidRequestId => {
                (StatusCode::BAD_REQUEST, "invalid_request_id", "Invalid request id")
            }
            Self::KeyReused => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "key_reused",
                "The key belongs to another purchase",
            ),
            Self::LimitReached => {
                (StatusCode::CONFLICT, "limit_reached", "Limit per buyer reached")
            }
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", "Not found"),
            Self::NotOpen => (StatusCode::FORBIDDEN, "not_open", "The sale has not begun"),
            Self::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "not_ready", "Not ready"),
            Self::NotWarm => {
                (StatusCode::SERVICE_UNAVAILABLE, "not_warm", "The sale is being prepared")
            }
            Self::Overloaded => {
                (StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Too many purchases at once")
            }
            Self::Paused => (StatusCode::SERVICE_UNAVAILABLE, "paused", "The sale is paused"),
            Self::SoldOut => (StatusCode::CONFLICT, "sold_out", "Sold out"),
            Self::Unauthenticated => {
                (StatusCode::UNAUTHORIZED, "unauthenticated", "Who buys is not known")
            }
            Self::UnknownItem => (StatusCode::NOT_FOUND, "unknown_item", "Unknown item"),
            Self::UnknownOrder => (StatusCode::NOT_FOUND, "unknown_order", "Unknown order"),
            Self::UnknownOutcome => {
                (StatusCode::SERVICE_UNAVAILABLE, "unknown_outcome", "The outcome is not known yet")
            }
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "The body must be JSON",
            ),
        }
    }
}

impl Problem {
    /// Its stable name.
    pub(super) fn code(&self) -> &'static str {
        self.code.row().1
    }

    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), field: None }
    }

    /// A problem with one part of the request: a path parameter, a header, a field of the body.
    pub(super) fn of_field(
        code: Code,
        field: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { code, detail: detail.into(), field: Some(field.into()) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code, title) = self.code.row();
        let retryable = status == StatusCode::SERVICE_UNAVAILABLE;
        let body = Body {
            r#type: format!("urn:lastunit:problem:{code}"),
            title,
            status: status.as_u16(),
            code,
            detail: self.detail,
            retryable,
            field: self.field,
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if retryable {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER.as_secs()));
        }
        response
    }
}
