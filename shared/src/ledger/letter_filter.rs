//! Which letters an operator means.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::{BuyerId, ItemId, LetterState};

/// Letters that fit everything that is said here; nothing said means all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LetterFilter {
    /// One of these; empty means any.
    pub ids: Vec<Uuid>,
    /// In one of these states; empty means any.
    pub states: Vec<LetterState>,
    pub reason: Option<String>,
    pub fingerprint: Option<String>,
    pub item: Option<ItemId>,
    pub buyer: Option<BuyerId>,
    /// In the error, whatever its case, or exactly so in the bytes.
    pub text: Option<String>,
    /// Of the latest death: this one or later.
    pub since: Option<DateTime<Utc>>,
    /// Of the latest death: before this.
    pub before: Option<DateTime<Utc>>,
}

/// The condition of a filter, on `dead_letters` and with $1 to $9. What is not said folds away when
/// the statement is planned.
macro_rules! letters_matching {
    () => {
        "(cardinality($1::uuid[]) = 0 OR letter_id = ANY($1))
         AND (cardinality($2::text[]) = 0 OR state = ANY($2))
         AND ($3::text IS NULL OR reason = $3)
         AND ($4::text IS NULL OR fingerprint = $4)
         AND ($5::text IS NULL OR item_id = $5)
         AND ($6::text IS NULL OR buyer_id = $6)
         AND ($7::text IS NULL OR strpos(lower(error), lower($7)) > 0
              OR position(convert_to($7, 'UTF8') IN body) > 0)
         AND ($8::timestamptz IS NULL OR last_died_at >= $8)
         AND ($9::timestamptz IS NULL OR last_died_at < $9)"
    };
}
pub(super) use letters_matching;

/// Binds a filter's nine values, before any others of the statement.
macro_rules! bind_filter {
    ($query:expr, $filter:expr) => {{
        let filter: &LetterFilter = $filter;
        $query
            .bind(filter.ids.as_slice())
            .bind(filter.states.iter().map(|state| state.as_str()).collect::<Vec<_>>())
            .bind(filter.reason.as_deref())
            .bind(filter.fingerprint.as_deref())
            .bind(filter.item.as_ref().map($crate::domain::ItemId::as_str))
            .bind(filter.buyer.as_ref().map($crate::domain::BuyerId::as_str))
            .bind(filter.text.as_deref())
            .bind(filter.since)
            .bind(filter.before)
    }};
}
pub(super) use bind_filter;
