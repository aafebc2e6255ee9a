//! Gets every reservation of a batch decided, whatever happens to the ledger meanwhile.
//!
//! Errors are transient until proven otherwise: the batch is kept and tried again. Only when the
//! data itself is wrong is the batch split, until the bad reservation stands alone; its neighbours
//! are decided.

use std::ops::Range;
use std::sync::Arc;

use shared::config::limits::COMMIT_BATCH;
use shared::domain::{Decision, Reservation};
use shared::ledger::{Ledger, LedgerError};
use shared::retry::Pauses;
use tokio_util::sync::CancellationToken;

/// What became of one reservation.
pub(crate) enum Fate {
    Decided(Decision),
    /// The ledger cannot take it, even alone.
    Hopeless(String),
}

/// Why a batch could not be decided.
enum Failure {
    /// It may pass: nothing is wrong with the reservations.
    Transient(LedgerError),
    /// At least one of the reservations cannot be decided.
    Permanent(String),
}

/// Decides reservations in their order. `None`: given up half-way.
pub(crate) async fn decide_all(
    ledger: &Ledger,
    reservations: &Arc<Vec<Reservation>>,
    give_up: &CancellationToken,
) -> Option<Vec<Fate>> {
    let mut fates = Vec::with_capacity(reservations.len());
    // Parts that are still to be decided, the next one on top.
    let mut parts = in_turns(reservations.len());
    let mut pauses = Pauses::new();
    while let Some(part) = parts.pop() {
        match attempt(ledger, reservations, part.clone()).await {
            Ok(decisions) => {
                fates.extend(decisions.into_iter().map(Fate::Decided));
                pauses.reset();
            }
            Err(Failure::Permanent(error)) if part.len() == 1 => fates.push(Fate::Hopeless(error)),
            Err(Failure::Permanent(_)) => {
                let middle = part.start + part.len() / 2;
                parts.extend([middle..part.end, part.start..middle]);
            }
            Err(Failure::Transient(error)) => {
                let pause = pauses.next_pause();
                tracing::warn!(%error, ?pause, "keeping a batch until the ledger takes it");
                parts.push(part);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = give_up.cancelled() => return None,
                }
            }
        }
    }
    Some(fates)
}

/// Most batches are one transaction; a message may hold more than that.
fn in_turns(reservations: usize) -> Vec<Range<usize>> {
    let turn = |start: usize| start..(start + COMMIT_BATCH).min(reservations);
    (0..reservations).step_by(COMMIT_BATCH).rev().map(turn).collect()
}

/// In a task of its own, so that a panic over one reservation does not take the consumer along.
async fn attempt(
    ledger: &Ledger,
    reservations: &Arc<Vec<Reservation>>,
    part: Range<usize>,
) -> Result<Vec<Decision>, Failure> {
    let (ledger, reservations) = (ledger.clone(), Arc::clone(reservations));
    let committed = tokio::spawn(async move { ledger.commit(&reservations[part]).await });
    match committed.await {
        Ok(Ok(decisions)) => Ok(decisions),
        Ok(Err(error)) if error.is_permanent() => Err(Failure::Permanent(error.to_string())),
        Ok(Err(error)) => Err(Failure::Transient(error)),
        Err(panic) => Err(Failure::Permanent(format!("deciding it panicked: {panic}"))),
    }
}
