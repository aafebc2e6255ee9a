//! The names of things. Each is checked once, where it enters, and cannot be wrong afterwards.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// A text that does not follow the rule of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be {rule}")]
pub struct InvalidText {
    /// What the text should have been, for example `an item id`.
    pub kind: &'static str,
    /// The rule that it breaks, for example `1–64 characters of A–Z a–z 0–9 . _ -`.
    pub rule: &'static str,
}

// Shared: one purchase hands its names from room to room, and to every message and reply.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $max:literal, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, InvalidText> {
                let allowed: fn(u8) -> bool = $allowed;
                if (1..=$max).contains(&text.len()) && text.bytes().all(allowed) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidText { kind: $kind, rule: $rule })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// Letters, digits, dot, underscore, hyphen: safe in a key, a routing key, a path and a column.
fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

text!(
    /// Something on sale. Case is kept.
    ItemId,
    "an item id",
    "1–64 characters of A–Z a–z 0–9 . _ -",
    64,
    is_id_byte
);
text!(
    /// Who buys; comes from authentication, never from a body.
    BuyerId,
    "a buyer id",
    "1–64 characters of A–Z a–z 0–9 . _ -",
    64,
    is_id_byte
);
text!(
    /// A deployment's name, in front of every Redis key and RabbitMQ name.
    Namespace,
    "a namespace",
    "1–32 characters of a–z 0–9 -",
    32,
    |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
);
text!(
    /// What a client sends so that its retry is the same purchase. Private to a buyer and an item.
    IdempotencyKey,
    "an idempotency key",
    "1–128 visible ASCII characters",
    128,
    |byte| byte.is_ascii_graphic()
);

impl IdempotencyKey {
    /// A key for a client that sent none.
    pub fn mint() -> Self {
        Self(Uuid::new_v4().to_string().into())
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Takes a UUID that was minted as this kind of id.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself.
            pub fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, InvalidText> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| InvalidText { kind: $kind, rule: "a UUID" })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

uuid_id!(
    /// One purchase, for ever: derived from buyer, item and idempotency key.
    RequestId,
    "a request id"
);
uuid_id!(
    /// One taking of stock; the message, the hold and the order all carry it.
    ReservationId,
    "a reservation id"
);
uuid_id!(
    /// One ledger; its messages are refused by every other.
    EnvironmentId,
    "an environment id"
);
uuid_id!(
    /// One Redis, for as long as it keeps its data: the ledger names the one that may sell.
    StoreId,
    "a store id"
);

impl StoreId {
    /// A new id, for a Redis that has none.
    pub fn mint() -> Self {
        Self(Uuid::new_v4())
    }
}

/// The fixed UUIDv5 namespace of request ids. Changing it would make every old key a new purchase.
const REQUESTS: Uuid = Uuid::from_u128(0x6c61_7374_756e_6974_8000_7265_7175_6573);

impl RequestId {
    /// UUIDv5 (RFC 9562) of `buyer 0x00 item 0x00 key`. No part may contain NUL, so no two
    /// purchases share a name.
    pub fn derive(buyer: &BuyerId, item: &ItemId, key: &IdempotencyKey) -> Self {
        let name = [buyer.as_str(), item.as_str(), key.as_str()].join("\0");
        Self(Uuid::new_v5(&REQUESTS, name.as_bytes()))
    }
}

impl ReservationId {
    /// A new UUIDv7: sorts by the time it was minted, so inserts stay at the right edge of an index.
    pub fn mint() -> Self {
        Self(Uuid::now_v7())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_take_only_their_alphabet_and_length() {
        for good in ["a", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(good.parse::<ItemId>().expect("a good id").as_str(), good);
        }
        for bad in ["", " ", "a b", "a:0", "{a}", "*", "a\0", "\"", "库", &"x".repeat(65)] {
            assert!(bad.parse::<ItemId>().is_err(), "{bad:?} must be refused");
            assert!(bad.parse::<BuyerId>().is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn a_namespace_is_lower_case_and_short() {
        assert!("shop-eu-1".parse::<Namespace>().is_ok());
        for bad in ["", "Shop", "a.b", "a_b", &"x".repeat(33)] {
            assert!(bad.parse::<Namespace>().is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn an_idempotency_key_is_visible_ascii() {
        assert!("a:{b}*\"~".parse::<IdempotencyKey>().is_ok());
        for bad in ["", "a b", "a\tb", "é", &"k".repeat(129)] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn a_request_id_is_private_to_buyer_and_item_and_never_changes() {
        let id = |buyer: &str, item: &str, key: &str| {
            RequestId::derive(
                &buyer.parse().expect("buyer"),
                &item.parse().expect("item"),
                &key.parse().expect("key"),
            )
        };
        assert_eq!(id("ann", "shoe", "1").to_string(), "cb779f8f-6d92-5915-85ef-515f6d014905");
        assert_ne!(id("ann", "shoe", "1"), id("bob", "shoe", "1"));
        assert_ne!(id("ann", "shoe", "1"), id("ann", "hat", "1"));
        assert_ne!(id("a", "bc", "1"), id("ab", "c", "1"));
    }
}
