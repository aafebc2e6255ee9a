//! How scripts and records spell reservation ids: in 22 characters rather than 36. A record is there
//! once for each order of a sale, and so small that this counts.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::domain::ReservationId;

const LENGTH: usize = 22;

/// A reservation id that is written as base64url without padding. Its alphabet has neither the space
/// of replies nor the `|` of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortId(pub(super) ReservationId);

/// A text that is no such id.
#[derive(Debug)]
pub(super) struct NotAShortId;

impl fmt::Display for ShortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; LENGTH];
        let written = URL_SAFE_NO_PAD.encode_slice(self.0.as_uuid().as_bytes(), &mut text);
        let text = written.ok().and_then(|written| std::str::from_utf8(&text[..written]).ok());
        f.write_str(text.ok_or(fmt::Error)?)
    }
}

impl FromStr for ShortId {
    type Err = NotAShortId;

    fn from_str(text: &str) -> Result<Self, NotAShortId> {
        let mut bytes = [0; 16];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(16) => Ok(Self(ReservationId::from_uuid(Uuid::from_bytes(bytes)))),
            _ => Err(NotAShortId),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_were_written() {
        let cases = [
            ("0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77", "AZDSspw6e2GKUV0vPB5Kdw"),
            ("ffffffff-ffff-7fff-bfff-ffffffffffff", "________f_-__________w"),
            ("00000000-0000-0000-0000-000000000000", "AAAAAAAAAAAAAAAAAAAAAA"),
        ];
        for (long, short) in cases {
            let id: ReservationId = long.parse().expect("a reservation id");
            assert_eq!(ShortId(id).to_string(), short);
            assert_eq!(short.parse::<ShortId>().expect("a short id"), ShortId(id));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in
            ["", "-", "AZDSspw6e2GKUV0vPB5Kd", "AZDSspw6e2GKUV0vPB5Kdx", "AZDSspw6e2GKUV0vPB5Kdwww"]
        {
            assert!(text.parse::<ShortId>().is_err(), "{text}");
        }
        assert!("0190d2b2-9c3a-7b61-8a51-5d2f3c1e4a77".parse::<ShortId>().is_err());
    }
}
