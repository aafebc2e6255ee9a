//! What the reconciler itself does with kept letters: it finishes discards that were cut short, ends
//! the waiting of letters whose sale is over if a patience is set, and forgets settled ones.

use shared::backends::Backends;
use shared::config::DeadLetters;
use shared::config::limits::LETTERS_ROUND;
use shared::domain::Reason;
use shared::ledger::LetterFilter;
use shared::shutdown::Shutdown;
use tokio::time::MissedTickBehavior;

use super::{DiscardOptions, LETTERS_PAGE, LettersError, discard};

/// Goes round every minute until it is told to stop.
pub(crate) async fn keep_letters(config: &DeadLetters, backends: &Backends, shutdown: &Shutdown) {
    let mut rounds = tokio::time::interval(LETTERS_ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = false;
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = shutdown.stop.cancelled() => return,
        }
        match keep_once(config, backends, shutdown).await {
            Ok(()) => told = false,
            Err(error) if !told => {
                tracing::warn!(%error, "kept dead letters wait until their backends are back");
                told = true;
            }
            Err(_) => {}
        }
    }
}

async fn keep_once(
    config: &DeadLetters,
    backends: &Backends,
    shutdown: &Shutdown,
) -> Result<(), LettersError> {
    let ids = backends.ledger.letters_to_discard(config.patience(), LETTERS_PAGE).await?;
    if !ids.is_empty() {
        let filter = LetterFilter { ids, ..LetterFilter::default() };
        let reason = Reason::OUT_OF_PATIENCE;
        let options = DiscardOptions { who: "reconciler".to_owned(), reason };
        let stop = &shutdown.stop;
        let report = discard(backends, &filter, None, &options, stop, |_| ()).await?;
        tracing::warn!(letters = report.discarded, ends = ?report.ends, "discarded dead letters");
    }
    let forgotten = backends.ledger.forget_letters(config.kept(), LETTERS_PAGE).await?;
    if forgotten > 0 {
        tracing::info!(letters = forgotten, "forgot settled dead letters");
    }
    Ok(())
}
