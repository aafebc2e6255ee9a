//! `terms.lua`: tells a bucket the terms that the ledger has by now.

use uuid::Uuid;

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::domain::Window;

/// What may change while an item is on sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Of the ledger row that was read.
    pub version: u64,
    pub window: Window,
    pub limit_per_buyer: Option<u64>,
    pub pause: Option<Uuid>,
}

/// How the telling went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermsReply {
    /// The bucket sells by these terms.
    Told,
    /// The item is not in this Redis.
    Absent,
    /// The bucket has later ones already.
    Newer { version: u64 },
}

impl Stock {
    /// Tells a bucket its terms; later ones are never overwritten by earlier ones.
    pub async fn tell_terms(
        &self,
        bucket: &Bucket,
        terms: &Terms,
    ) -> Result<TermsReply, StockError> {
        let call = self
            .scripts
            .terms
            .call()
            .key(self.keys.sale(bucket))
            .arg(terms.version)
            .arg(terms.window.opens_at().0)
            .arg(terms.window.closes_at().0)
            .arg(super::or_empty(terms.limit_per_buyer))
            .arg(super::or_empty(terms.pause));
        let reply: String = self.connection.run(call).await?;
        let mut words = Words::of("terms", &reply);
        Ok(match words.word()? {
            "told" => TermsReply::Told,
            "absent" => TermsReply::Absent,
            "newer" => TermsReply::Newer { version: words.parse()? },
            _ => return Err(words.malformed()),
        })
    }
}
