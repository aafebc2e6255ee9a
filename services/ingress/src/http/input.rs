//! Reads a purchase from a request. Whatever is wrong is named by its field, before anything is
//! taken.

use std::fmt;

use axum::body::Bytes;
use axum::extract::Path;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::{HeaderMap, header};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use shared::domain::{BuyerId, IdempotencyKey, ItemId, Quantity, RequestId};

use super::problem::{Code, Problem};

/// The buyer, set by the gateway in front of us.
const BUYER: &str = "X-Buyer-Id";
pub(super) const KEY: &str = "Idempotency-Key";

pub(super) fn missing_item() -> Problem {
    Problem::of_field(Code::InvalidItem, "item", "the path names no item")
}

/// The path parameter `item`.
pub(super) fn item(path: Result<Path<String>, PathRejection>) -> Result<ItemId, Problem> {
    let Path(text) = path.map_err(|error| invalid_item(error.body_text()))?;
    parse_item(&text)
}

/// The path parameters `item` and `request_id`.
pub(super) fn item_and_request(
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(ItemId, RequestId), Problem> {
    let Path((item, request_id)) = path.map_err(|error| invalid_item(error.body_text()))?;
    let request_id = request_id.parse().map_err(|error: shared::domain::InvalidText| {
        Problem::of_field(Code::InvalidRequestId, "request_id", error.to_string())
    })?;
    Ok((parse_item(&item)?, request_id))
}

fn parse_item(text: &str) -> Result<ItemId, Problem> {
    text.parse().map_err(|error: shared::domain::InvalidText| invalid_item(error.to_string()))
}

fn invalid_item(detail: String) -> Problem {
    Problem::of_field(Code::InvalidItem, "item", detail)
}

/// The header `X-Buyer-Id`.
pub(super) fn buyer(headers: &HeaderMap) -> Result<BuyerId, Problem> {
    let invalid = |detail: &str| Problem::of_field(Code::InvalidBuyer, BUYER, detail);
    let Some(text) = only_one(headers, BUYER).map_err(invalid)? else {
        let detail = "the gateway in front of this service must say who buys";
        return Err(Problem::of_field(Code::Unauthenticated, BUYER, detail));
    };
    text.parse().map_err(|error: shared::domain::InvalidText| invalid(&error.to_string()))
}

/// The header `Idempotency-Key`; without one, a key is minted and returned.
pub(super) fn key(headers: &HeaderMap) -> Result<IdempotencyKey, Problem> {
    let invalid = |detail: &str| Problem::of_field(Code::InvalidKey, KEY, detail);
    match only_one(headers, KEY).map_err(invalid)? {
        None => Ok(IdempotencyKey::mint()),
        Some(text) => {
            text.parse().map_err(|error: shared::domain::InvalidText| invalid(&error.to_string()))
        }
    }
}

fn only_one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err("the header must be there once");
    }
    first.map(|value| value.to_str().map_err(|_| "the header must be visible ASCII")).transpose()
}

/// The body `{"quantity": 1}`.
pub(super) fn quantity(
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Quantity, Problem> {
    if !is_json(headers) {
        let detail = "send Content-Type: application/json";
        return Err(Problem::of_field(Code::UnsupportedMediaType, "Content-Type", detail));
    }
    let body = body.map_err(|error| {
        let code = match error.status().as_u16() {
            413 => Code::BodyTooLarge,
            _ => Code::InvalidBody,
        };
        Problem::of_field(code, "body", error.body_text())
    })?;
    let Fields(fields) = serde_json::from_slice(&body).map_err(|error| {
        let detail = format!("the body must be a JSON object like {{\"quantity\": 1}}: {error}");
        Problem::of_field(Code::InvalidBody, "body", detail)
    })?;
    let invalid = |field: &str, detail: &str| Problem::of_field(Code::InvalidField, field, detail);
    let mut quantity = None;
    for (name, value) in fields {
        if name != "quantity" {
            return Err(invalid(&name, "there is no such field; the only one is quantity"));
        }
        if quantity.replace(value).is_some() {
            return Err(invalid("quantity", "the field must be there once"));
        }
    }
    let value = quantity.ok_or_else(|| invalid("quantity", "the field is missing"))?;
    value
        .as_u64()
        .and_then(|units| Quantity::new(units).ok())
        .ok_or_else(|| invalid("quantity", &shared::domain::InvalidQuantity.to_string()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) else {
        return false;
    };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The members of a JSON object, repeated ones included, which a map would swallow.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<u64, String> {
        let headers = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            "application/json; charset=utf-8".parse().expect("a header"),
        )]);
        quantity(&headers, Ok(Bytes::copy_from_slice(body.as_bytes())))
            .map(Quantity::units)
            .map_err(|problem| format!("{problem:?}"))
    }

    #[test]
    fn a_quantity_is_a_json_integer_and_nothing_else() {
        assert_eq!(read(r#"{"quantity": 1}"#), Ok(1));
        assert_eq!(read(r#" {"quantity":1000000} "#), Ok(1_000_000));
        for bad in [
            "0",
            "-5",
            "-0",
            "1.5",
            "1.0",
            "1e3",
            "\"1\"",
            "null",
            "true",
            "[1]",
            "2147483648",
            "4294967297",
            "9223372036854775808",
            "18446744073709551616",
        ] {
            let error = read(&format!(r#"{{"quantity": {bad}}}"#)).expect_err(bad);
            assert!(error.contains("\"quantity\""), "{bad}: {error}");
        }
    }

    #[test]
    fn what_is_not_one_quantity_is_refused() {
        for bad in [
            "",
            "{",
            "[]",
            "1",
            "null",
            "{}",
            r#"{"quantity":1,"quantity":1}"#,
            r#"{"quantity":1,"buyer":"ann"}"#,
            r#"{"quantity":1} x"#,
            r#"{"quantity":01}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
