//! What comparisons have found, kept for whoever has to explain it later.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::rows::{signed, unix_millis};
use super::{Ledger, LedgerError};
use crate::domain::{BuyerId, ItemId, UnixMillis};

/// One difference between Redis and the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub item: ItemId,
    pub kind: FindingKind,
    /// Units that Redis had too few (positive) or too many (negative).
    pub difference: i64,
    /// Units that were added to Redis; 0 when it was only looked at.
    pub corrected: i64,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    Stock,
    BuyerTotal(BuyerId),
    LedgerBehind,
}

type Row = (DateTime<Utc>, String, Option<String>, i64, i64);

impl FindingKind {
    /// Its name in the ledger, in metrics and in logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::BuyerTotal(_) => "buyer_total",
            Self::LedgerBehind => "ledger_behind",
        }
    }
}

impl Ledger {
    /// Keeps findings.
    pub async fn keep_findings(&self, findings: &[Finding]) -> Result<(), LedgerError> {
        let failed = self.failed("keep what a comparison found");
        let mut transaction = self.pool.begin().await.map_err(&failed)?;
        for finding in findings {
            let buyer = match &finding.kind {
                FindingKind::BuyerTotal(buyer) => Some(buyer.as_str()),
                FindingKind::Stock | FindingKind::LedgerBehind => None,
            };
            sqlx::query(
                "INSERT INTO reconciliations
                     (finding_id, item_id, kind, buyer_id, difference, corrected)
                 VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(Uuid::now_v7())
            .bind(finding.item.as_str())
            .bind(finding.kind.as_str())
            .bind(buyer)
            .bind(finding.difference)
            .bind(finding.corrected)
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
        }
        transaction.commit().await.map_err(&failed)
    }

    /// The latest findings of an item, newest first.
    pub async fn findings(
        &self,
        item: &ItemId,
        most: u32,
    ) -> Result<Vec<(UnixMillis, Finding)>, LedgerError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT found_at, kind, buyer_id, difference, corrected FROM reconciliations
             WHERE item_id = $1 ORDER BY found_at DESC, finding_id DESC LIMIT $2",
        )
        .bind(item.as_str())
        .bind(signed(u64::from(most)))
        .fetch_all(&self.pool)
        .await
        .map_err(self.failed("list what comparisons found"))?;
        rows.into_iter()
            .map(|(found_at, kind, buyer, difference, corrected)| {
                let kind = match (kind.as_str(), buyer) {
                    ("buyer_total", Some(buyer)) => {
                        FindingKind::BuyerTotal(buyer.parse().map_err(LedgerError::corrupt)?)
                    }
                    ("ledger_behind", None) => FindingKind::LedgerBehind,
                    ("stock", None) => FindingKind::Stock,
                    (other, _) => {
                        return Err(LedgerError::corrupt(format!("a finding of {other:?}")));
                    }
                };
                let finding = Finding { item: item.clone(), kind, difference, corrected };
                Ok((unix_millis(found_at), finding))
            })
            .collect()
    }
}
