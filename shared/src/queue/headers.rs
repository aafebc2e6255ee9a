//! What headers a message came with.

use std::collections::HashMap;

use lapin::types::{AMQPValue, FieldTable, ShortString};
use serde_json::{Map, Value};

/// The texts among them, which is all that our own messages have.
pub(super) fn texts(headers: &Option<FieldTable>) -> HashMap<String, String> {
    let entries = headers.iter().flat_map(FieldTable::inner);
    let text = |(name, value): (&ShortString, &AMQPValue)| match value {
        AMQPValue::LongString(text) => Some((name.to_string(), text.to_string())),
        _ => None,
    };
    entries.filter_map(text).collect()
}

/// All of them, such as the broker's `x-death`, to be shown.
pub(super) fn all(headers: &Option<FieldTable>) -> Value {
    headers.as_ref().map_or_else(|| Value::Object(Map::new()), table)
}

fn table(table: &FieldTable) -> Value {
    let entry = |(name, value): (&ShortString, &AMQPValue)| (without_nul(name), shown(value));
    Value::Object(table.inner().iter().map(entry).collect())
}

fn shown(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::Boolean(value) => Value::from(*value),
        AMQPValue::ShortShortInt(number) => Value::from(*number),
        AMQPValue::ShortShortUInt(number) => Value::from(*number),
        AMQPValue::ShortInt(number) => Value::from(*number),
        AMQPValue::ShortUInt(number) => Value::from(*number),
        AMQPValue::LongInt(number) => Value::from(*number),
        AMQPValue::LongUInt(number) => Value::from(*number),
        AMQPValue::LongLongInt(number) => Value::from(*number),
        AMQPValue::Timestamp(seconds) => Value::from(*seconds),
        AMQPValue::Float(number) => Value::from(*number),
        AMQPValue::Double(number) => Value::from(*number),
        AMQPValue::ShortString(text) => Value::from(without_nul(text)),
        AMQPValue::LongString(text) => Value::from(without_nul(text)),
        AMQPValue::FieldArray(values) => values.as_slice().iter().map(shown).collect(),
        AMQPValue::FieldTable(nested) => table(nested),
        AMQPValue::DecimalValue(_) | AMQPValue::ByteArray(_) => Value::from(format!("{value:?}")),
        AMQPValue::Void => Value::Null,
    }
}

/// The ledger keeps headers as JSON, which cannot hold a NUL there.
fn without_nul(text: &impl ToString) -> String {
    text.to_string().replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_own_headers_are_shown_and_are_no_texts() {
        let mut death = FieldTable::default();
        death.insert("count".into(), AMQPValue::LongLongInt(3));
        death.insert("queue".into(), AMQPValue::LongString("orders.0".into()));
        let mut headers = FieldTable::default();
        let deaths = vec![AMQPValue::FieldTable(death)];
        headers.insert("x-death".into(), AMQPValue::FieldArray(deaths.into()));
        headers.insert("reason".into(), AMQPValue::LongString("a\0b".into()));
        let headers = Some(headers);
        let expected = serde_json::json!({
            "x-death": [{ "count": 3, "queue": "orders.0" }],
            "reason": "a\u{fffd}b",
        });
        assert_eq!(all(&headers), expected);
        assert_eq!(texts(&headers).keys().collect::<Vec<_>>(), ["reason"]);
        assert_eq!(all(&None), serde_json::json!({}));
    }
}
