//! A prepared request in which item, buyer and key are overwritten in place.

use std::net::SocketAddr;
use std::ops::Range;

use anyhow::ensure;

/// Digits of a request's number, in buyer and key.
const DIGITS: usize = 10;

/// The bytes of a request; cheap to make the next one of.
#[derive(Debug, Clone)]
pub(super) struct Template {
    bytes: Vec<u8>,
    items: Vec<String>,
    item: Range<usize>,
    buyer: Range<usize>,
    key: Range<usize>,
}

impl Template {
    pub(super) fn new(address: SocketAddr, items: &[String], tag: &str) -> anyhow::Result<Self> {
        let length = items.first().map_or(0, String::len);
        ensure!(length > 0 && items.iter().all(|item| item.len() == length), "uneven items");
        const BODY: &str = r#"{"quantity":1}"#;
        let (item, digits) = (&items[0], "0".repeat(DIGITS));
        let head = format!("POST /v1/items/{item}/orders HTTP/1.1\r\nhost: {address}\r\n");
        let buyer = format!("{head}x-buyer-id: b{tag}{digits}");
        let key = format!("{buyer}\r\nidempotency-key: k{tag}{digits}");
        let length_of_body = BODY.len();
        let whole = format!(
            "{key}\r\ncontent-type: application/json\r\ncontent-length: {length_of_body}\r\n\r\n{BODY}"
        );
        let item_at = "POST /v1/items/".len();
        Ok(Self {
            bytes: whole.into_bytes(),
            items: items.to_vec(),
            item: item_at..item_at + length,
            buyer: buyer.len() - DIGITS..buyer.len(),
            key: key.len() - DIGITS..key.len(),
        })
    }

    /// The request of this number.
    pub(super) fn of(&mut self, number: u64) -> &[u8] {
        if self.items.len() > 1 {
            let item = &self.items[number as usize % self.items.len()];
            self.bytes[self.item.clone()].copy_from_slice(item.as_bytes());
        }
        let mut digits = [b'0'; DIGITS];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.bytes[self.buyer.clone()].copy_from_slice(&digits);
        self.bytes[self.key.clone()].copy_from_slice(&digits);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_a_buyer_and_a_key_of_its_own() {
        let address = "127.0.0.1:80".parse().expect("an address");
        let items = ["item-1".to_owned(), "item-2".to_owned()];
        let mut template = Template::new(address, &items, "r3").expect("a template");
        let text = String::from_utf8(template.of(4_321).to_vec()).expect("text");
        assert_eq!(
            text,
            "POST /v1/items/item-2/orders HTTP/1.1\r\nhost: 127.0.0.1:80\r\n\
             x-buyer-id: br30000004321\r\nidempotency-key: kr30000004321\r\n\
             content-type: application/json\r\ncontent-length: 14\r\n\r\n{\"quantity\":1}"
        );
        let text = String::from_utf8(template.of(0).to_vec()).expect("text");
        assert!(text.contains("/item-1/") && text.contains("br30000000000"), "{text}");
    }
}
