//! Reconciliation: makes a live item in Redis agree with the ledger.

use shared::backends::Backends;
use shared::config::limits::{CORRECTION_LEASE, HOLDS_COMPARED};
use shared::domain::{ItemId, UnixMillis};
use shared::ledger::{Finding, FindingKind, LedgerError};
use shared::telemetry::metrics;

use crate::causes::{Causes, causes};
use crate::compare::{CompareError, Compared, compare};
use crate::correct::{CorrectError, Corrected, Corrector, Mode};
use crate::locked::{LockItemError, lock_item};
use crate::republish::{Address, RepublishError, republish_confirmed};
use crate::suspects::suspects;

/// How an item compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    pub item: ItemId,
    pub found: Corrected,
    /// Orders that were published again, because the ledger has lost them.
    pub republished: u64,
    /// Which requests make it differ; only looked for by a plan.
    pub causes: Option<Causes>,
    /// The item's numbers, as they were first read.
    pub numbers: Numbers,
}

/// An item in Redis, all buckets together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    pub epoch: u64,
    pub available: u64,
    pub held: u64,
    /// Units on their way from one bucket to another.
    pub moving: u64,
    pub confirmed_units: u64,
    pub restored_units: u64,
    pub at: UnixMillis,
}

/// Why an item could not be reconciled. Doing it again is always safe.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Correct(#[from] CorrectError),
    #[error(transparent)]
    Lock(#[from] LockItemError),
    #[error(transparent)]
    Republish(#[from] RepublishError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Reconciled {
    /// True when nothing differs, or everything that did has been corrected.
    pub fn agrees(&self) -> bool {
        let Corrected { units, added, buyers, buyers_corrected, ledger_behind, ledger_trusted } =
            &self.found;
        units == added
            && (buyers.is_empty() || *buyers_corrected)
            && (*ledger_behind == 0 || *ledger_trusted)
    }

    /// Units that Redis sells too many (positive) or too few (negative), after what was corrected.
    pub fn drift(&self) -> i64 {
        self.found.added - self.found.units
    }

    /// Units of the difference that no request explains, when causes were looked for.
    pub fn unexplained(&self) -> i64 {
        self.causes.as_ref().map_or(0, |causes| self.found.units - causes.units)
    }
}

/// Compares an item with the ledger, and does about it what the mode says. An item that looks right
/// is never frozen; what looks wrong may only be on its way, and is looked at again under a freeze.
pub async fn reconcile(
    backends: &Backends,
    address: &Address,
    item: &ItemId,
    mode: Mode,
) -> Result<Reconciled, ReconcileError> {
    let Backends { ledger, stock, .. } = backends;
    let look = compare(ledger, stock, item, &[], HOLDS_COMPARED).await?;
    if !look.buckets.iter().all(|bucket| bucket.standing().is_live()) {
        return Err(CompareError::NotLive(item.clone()).into());
    }
    let suspects = suspects(ledger, stock, item, &look).await?;
    let mut reconciled = Reconciled {
        item: item.clone(),
        found: Corrected::default(),
        republished: 0,
        causes: None,
        numbers: numbers(&look),
    };
    if look.difference.is_none() && look.unseen() == 0 && suspects.is_empty() {
        return Ok(reconciled);
    }
    // What comes back from the records must not be raised as well: first it is decided once more.
    let mut mode = mode;
    if mode == Mode::ApplyRestoredLedger {
        reconciled.republished = republish_confirmed(backends, address, item).await?;
        if reconciled.republished > 0 {
            mode = Mode::Apply;
        }
    }
    let lock = lock_item(stock, ledger, item, "reconcile", CORRECTION_LEASE).await?;
    let corrector = Corrector { ledger, stock, lock: &lock, mode, most_holds: HOLDS_COMPARED };
    let found = corrector.correct(&suspects).await;
    lock.release().await;
    reconciled.found = found?;
    let is_behind = reconciled.found.ledger_behind > 0;
    if mode == Mode::Plan && (is_behind || reconciled.found.units != 0) {
        reconciled.causes = Some(causes(ledger, stock, item, is_behind).await?);
    }
    if mode == Mode::Apply && is_behind && reconciled.republished == 0 {
        reconciled.republished = republish_confirmed(backends, address, item).await?;
    }
    tell(&reconciled);
    ledger.keep_findings(&findings(&reconciled)).await?;
    Ok(reconciled)
}

fn numbers(look: &Compared) -> Numbers {
    let buckets = || look.buckets.iter();
    Numbers {
        epoch: buckets().map(|bucket| bucket.epoch).max().unwrap_or(0),
        available: look.stock.available,
        held: look.stock.holds.values().map(|hold| hold.quantity.units()).sum(),
        moving: look.stock.moving,
        confirmed_units: look.stock.confirmed_units,
        restored_units: buckets().map(|bucket| bucket.restored_units).sum(),
        at: look.at(),
    }
}

fn findings(reconciled: &Reconciled) -> Vec<Finding> {
    let Corrected { units, added, buyers, buyers_corrected, ledger_behind, ledger_trusted } =
        &reconciled.found;
    let finding = |kind, difference, corrected| Finding {
        item: reconciled.item.clone(),
        kind,
        difference,
        corrected,
    };
    let mut findings = Vec::new();
    if *units != 0 {
        findings.push(finding(FindingKind::Stock, *units, *added));
    }
    for (buyer, units) in buyers {
        let corrected = if *buyers_corrected { *units } else { 0 };
        findings.push(finding(FindingKind::BuyerTotal(buyer.clone()), *units, corrected));
    }
    if *ledger_behind > 0 {
        let units = i64::try_from(*ledger_behind).unwrap_or(i64::MAX);
        let corrected = if *ledger_trusted { units } else { 0 };
        findings.push(finding(FindingKind::LedgerBehind, units, corrected));
    }
    findings
}

/// One line for each finding.
fn tell(reconciled: &Reconciled) {
    let (item, republished) = (&reconciled.item, reconciled.republished);
    for Finding { kind, difference, corrected, .. } in &findings(reconciled) {
        metrics::finding(kind.as_str());
        match kind {
            FindingKind::Stock => {
                tracing::warn!(%item, difference, corrected, "Redis and the ledger differ in stock");
            }
            FindingKind::BuyerTotal(buyer) => {
                tracing::warn!(%item, %buyer, difference, corrected, "Redis and the ledger differ in a buyer's total");
            }
            FindingKind::LedgerBehind if *corrected > 0 => {
                tracing::warn!(%item, units = difference,
                    "an operator vouches for the ledger: what it lacks is on sale again");
            }
            FindingKind::LedgerBehind => {
                tracing::error!(%item, units = difference, republished,
                    "the ledger has gone back in time: it lacks confirmed orders, which are published again; nothing is raised");
            }
        }
    }
}
