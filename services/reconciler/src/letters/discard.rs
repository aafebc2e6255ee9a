//! Ends the waiting of letters that nobody wants any more, and gives their stock back.
//!
//! The intent is written first. Then the request is expired in the ledger, so that no copy of the
//! message is ever sold; only then does its hold give its stock back. Each step may be repeated: a run
//! that is killed is finished by the next one, or by the reconciler.

use std::collections::HashMap;

use shared::backends::Backends;
use shared::crash;
use shared::domain::{
    EnvironmentId, ItemId, LetterClass, LetterContents, LetterState, Reason, Resolution, resolve,
};
use shared::ledger::{Expiry, KeptLetter, LetterFilter, LetterRun, LetterSort};
use shared::stock::{RestoreReply, RestoreRequest};
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Judge, LETTERS_PAGE, LettersError, contents};

/// How often letters that others have in their hands are asked for again.
const POLL: Duration = Duration::from_millis(100);

/// Letters that one of ours ends within its lease, one ledger transaction each.
const DISCARD_PAGE: u32 = LETTERS_PAGE / 2;

/// How to discard.
#[derive(Debug, Clone)]
pub struct DiscardOptions {
    /// Who does it.
    pub who: String,
    /// What the order says for ever.
    pub reason: Reason,
}

/// How letters were discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscardReport {
    pub run: LetterRun,
    pub discarded: u64,
    /// By their ends: see [`discard`].
    pub ends: HashMap<&'static str, u64>,
    /// Told to stop before the end.
    pub stopped: bool,
}

/// Discards letters that fit and were parked before this moment. They end as
/// `restored` (their stock went back), `restored_before`, `sold` (the ledger has sold exactly this
/// reservation: nothing goes back), `not_held` (Redis knew no hold; it knows the verdict now),
/// `of_another` (the record in Redis is another reservation's), or `dropped` (nothing hangs on them).
pub async fn discard(
    backends: &Backends,
    filter: &LetterFilter,
    class: Option<LetterClass>,
    options: &DiscardOptions,
    stop: &CancellationToken,
    mut on_page: impl FnMut(u64),
) -> Result<DiscardReport, LettersError> {
    let ledger = &backends.ledger;
    let run = ledger.begin_letter_run(&options.who).await?;
    let filter = LetterFilter {
        states: vec![LetterState::Parked, LetterState::Replaying],
        before: Some(filter.before.map_or(run.began, |before| before.min(run.began))),
        ..filter.clone()
    };
    let mut judge = Judge::open(ledger, &backends.stock).await?;
    let mut report = DiscardReport { run, discarded: 0, ends: HashMap::new(), stopped: false };
    loop {
        let (mut after, mut ended) = (None, 0);
        loop {
            if stop.is_cancelled() {
                report.stopped = true;
                return Ok(report);
            }
            let page = ledger.list_letters(&filter, LetterSort::Id, after, DISCARD_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.letter_id);
            let ids = of_class(&mut judge, page, class).await?;
            let ends =
                discard_page(backends, &report.run, judge.environment(), &options.reason, &ids)
                    .await?;
            ended += ends.len() as u64;
            on_page(ends.len() as u64);
            for (_, end) in ends {
                *report.ends.entry(end).or_default() += 1;
            }
        }
        report.discarded += ended;
        if ended == 0 && ledger.letters_in_hand(&filter).await? == 0 {
            return Ok(report);
        }
        if ended == 0 {
            sleep(POLL).await;
        }
    }
}

async fn of_class(
    judge: &mut Judge,
    page: Vec<KeptLetter>,
    class: Option<LetterClass>,
) -> Result<Vec<Uuid>, LettersError> {
    let Some(class) = class else {
        return Ok(page.into_iter().map(|letter| letter.letter_id).collect());
    };
    let judged = judge.judge(page).await?;
    let of_class = judged.iter().filter(|one| one.class == class);
    Ok(of_class.map(|one| one.letter.letter_id).collect())
}

/// Discards a page of letters, and says how each ended.
async fn discard_page(
    backends: &Backends,
    run: &LetterRun,
    environment: EnvironmentId,
    reason: &Reason,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, &'static str)>, LettersError> {
    let taken = backends.ledger.begin_discard(run, reason, ids).await?;
    crash::point("discard.begun");
    let (mut ends, mut restores) = (Vec::new(), HashMap::<ItemId, Vec<_>>::new());
    for letter in taken {
        match what_goes_back(backends, environment, reason, &letter).await? {
            Ok((item, request)) => {
                restores.entry(item).or_default().push((letter.letter_id, request));
            }
            Err(end) => ends.push((letter.letter_id, end)),
        }
    }
    crash::point("discard.expired");
    for (item, restores) in restores {
        let (ids, requests): (Vec<_>, Vec<_>) = restores.into_iter().unzip();
        let replies = backends.stock.restore(&item, &requests).await?;
        ends.extend(ids.into_iter().zip(replies.iter().map(end)));
    }
    crash::point("discard.restored");
    backends.ledger.end_discard(run, &ends).await?;
    Ok(ends)
}

/// Asks the ledger, which expires the request unless it is decided: the hold that may give its stock
/// back, or how the letter ends without.
async fn what_goes_back(
    backends: &Backends,
    environment: EnvironmentId,
    reason: &Reason,
    letter: &KeptLetter,
) -> Result<Result<(ItemId, RestoreRequest), &'static str>, LettersError> {
    let LetterContents::Reservation(reservation) = contents(letter, environment) else {
        return Ok(Err("dropped"));
    };
    let expiry = Expiry {
        request_id: reservation.request_id,
        reservation_id: reservation.reservation_id,
        item: reservation.item.clone(),
        buyer: reservation.buyer.clone(),
        quantity: reservation.quantity,
        epoch: reservation.epoch,
        // The one that was given when the discard began.
        reason: letter.discard_reason.clone().unwrap_or_else(|| reason.clone()),
    };
    let Some(order) = backends.ledger.expire(&expiry).await? else { return Ok(Err("dropped")) };
    let verdict = match resolve(reservation.reservation_id, &order) {
        Resolution::Restore(verdict) => verdict,
        Resolution::Refuse => return Ok(Err("sold")),
    };
    let request = RestoreRequest {
        request_id: reservation.request_id,
        reservation_id: reservation.reservation_id,
        buyer: reservation.buyer,
        quantity: reservation.quantity,
        epoch: reservation.epoch,
        verdict,
    };
    Ok(Ok((reservation.item, request)))
}

fn end(reply: &RestoreReply) -> &'static str {
    match reply {
        RestoreReply::Done => "restored",
        RestoreReply::Already => "restored_before",
        RestoreReply::Unseen => "not_held",
        RestoreReply::Conflict { .. } => "of_another",
    }
}
