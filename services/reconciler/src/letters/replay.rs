//! Sends letters again, under their stored reservation ids and through their usual queues.
//!
//! Each letter is first taken in the ledger, then published with a confirm, then marked. A run that
//! is killed in between leaves it `replaying`; the next run takes it over once its lease has passed
//! and sends it again, which does no harm: whoever decides it asks for its reservation id first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use shared::backends::Backends;
use shared::config::Config;
use shared::config::limits::{LETTER_SEND_DEADLINE, PUBLISH_BATCH};
use shared::contract::ReservationsPlaced;
use shared::crash;
use shared::domain::{
    EnvironmentId, ItemId, LetterClass, LetterContents, LetterState, Reservation, Violation,
    partition,
};
use shared::ledger::{KeptLetter, LetterFilter, LetterRun, LetterSort, RunCounts};
use shared::queue::{Outgoing, Route};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Judge, LETTERS_PAGE, LettersError, contents, law};

/// How often a run looks at what became of its letters, at the most. Counting many takes longer, and a
/// run spends no more than a tenth of its time on it.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_SHARE: u32 = 10;

/// How often it is asked whether something has ended, while nothing else is to be done.
const POLL: Duration = Duration::from_millis(25);

/// With fewer ends than this, a share says nothing.
const ENDS_FOR_A_SHARE: u64 = 20;

/// How to replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// Who does it.
    pub who: String,
    /// So many letters go first; the others follow only if all of them end well.
    pub canary: Option<u64>,
    /// Letters a second; 0 is as fast as the broker confirms.
    pub rate: u32,
    /// The largest share of letters that may end badly.
    pub stop_at_failures: f64,
    /// How long to wait for orders while none is decided.
    pub wait: Duration,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayStep {
    /// So many letters are to be sent.
    Begun(u64),
    /// So many more are sent.
    Sent(u64),
    /// So many are sent and not decided.
    Awaiting(u64),
}

/// Why a run stopped before its end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Stopped {
    #[error("the first letters did not end well")]
    Canary,
    #[error("{failures} of {ended} letters did not end well")]
    Failures { failures: u64, ended: u64 },
    #[error("{item} breaks the law: {violation}")]
    BrokenLaw { item: ItemId, violation: Violation },
    #[error("RabbitMQ did not take a letter within {} s", LETTER_SEND_DEADLINE.as_secs())]
    Broker,
    #[error("it was told to stop")]
    Asked,
}

/// What a run has done.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayReport {
    pub run: LetterRun,
    /// Confirmed by the broker, by this run.
    pub sent: u64,
    /// Cannot be sent: unreadable, or of another environment.
    pub skipped: u64,
    /// What became of those that were sent.
    pub counts: RunCounts,
    pub stopped: Option<Stopped>,
}

struct Replayer<'a> {
    config: &'a Config,
    backends: &'a Backends,
    options: &'a ReplayOptions,
    stop: &'a CancellationToken,
    run: LetterRun,
    judge: Judge,
    filter: LetterFilter,
    class: Option<LetterClass>,
    items: BTreeSet<ItemId>,
    total: u64,
    sent: u64,
    began: Instant,
    look_at: Instant,
}

/// Why the work does not go on.
enum Halt {
    Stopped(Stopped),
    Failed(LettersError),
}

impl<E: Into<LettersError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Replays letters that fit the filter and were parked before this moment.
pub async fn replay(
    config: &Config,
    backends: &Backends,
    filter: &LetterFilter,
    class: Option<LetterClass>,
    options: &ReplayOptions,
    stop: &CancellationToken,
    mut on_step: impl FnMut(ReplayStep),
) -> Result<ReplayReport, LettersError> {
    let run = backends.ledger.begin_letter_run(&options.who).await?;
    let filter = LetterFilter {
        states: vec![LetterState::Parked, LetterState::Replaying],
        before: Some(filter.before.map_or(run.began, |before| before.min(run.began))),
        ..filter.clone()
    };
    let mut replayer = Replayer {
        judge: Judge::open(&backends.ledger, &backends.stock).await?,
        total: backends.ledger.count_letters(&filter).await?,
        config,
        backends,
        options,
        stop,
        run,
        filter,
        class,
        items: BTreeSet::new(),
        sent: 0,
        began: Instant::now(),
        look_at: Instant::now() + LOOK,
    };
    on_step(ReplayStep::Begun(replayer.total));
    let stopped = match replayer.go(&mut on_step).await {
        Ok(()) => None,
        Err(Halt::Stopped(stopped)) => Some(stopped),
        Err(Halt::Failed(error)) => return Err(error),
    };
    let environment = replayer.judge.environment();
    let skipped = backends.ledger.unsendable_letters(&replayer.filter, environment).await?;
    let Replayer { run, sent, .. } = replayer;
    let counts = backends.ledger.count_letter_run(&run).await?;
    Ok(ReplayReport { run, sent, skipped, counts, stopped })
}

impl Replayer<'_> {
    async fn go(&mut self, on_step: &mut impl FnMut(ReplayStep)) -> Result<(), Halt> {
        if let Some(canary) = self.options.canary.filter(|canary| *canary > 0) {
            self.pass(canary, on_step).await?;
            let counts = self.until_ended(on_step).await?;
            self.law().await?;
            if counts.failures() > 0 || counts.undecided > 0 {
                return Err(Halt::Stopped(Stopped::Canary));
            }
        }
        loop {
            let sent = self.pass(u64::MAX, on_step).await?;
            // Somebody else's, or left lying by a run that was killed: it is theirs to the end, or
            // ours as soon as their lease has passed.
            let elsewhere = self.backends.ledger.letters_in_hand(&self.filter).await?;
            if sent == 0 && elsewhere == 0 {
                break;
            }
            if sent == 0 {
                self.pause(POLL).await?;
            }
        }
        let counts = self.until_ended(on_step).await?;
        self.share(counts)?;
        self.law().await?;
        let items: Vec<_> = self.items.iter().cloned().collect();
        let Backends { ledger, stock, .. } = self.backends;
        match law::broken_at_rest(ledger, stock, &items).await? {
            Some((item, violation)) => Err(Halt::Stopped(Stopped::BrokenLaw { item, violation })),
            None => Ok(()),
        }
    }

    /// Goes through all letters once, and sends at most so many. Only one page is in memory.
    async fn pass(&mut self, most: u64, on_step: &mut impl FnMut(ReplayStep)) -> Result<u64, Halt> {
        let (mut after, mut sent) = (None, 0);
        while sent < most {
            if self.stop.is_cancelled() {
                return Err(Halt::Stopped(Stopped::Asked));
            }
            let left = u32::try_from(most - sent).unwrap_or(u32::MAX);
            let ids = self.next_page(&mut after, self.page_size().min(left)).await?;
            let Some(ids) = ids else { break };
            let sent_now = self.send(&ids).await?;
            sent += sent_now;
            self.sent += sent_now;
            on_step(ReplayStep::Sent(sent_now));
            if Instant::now() > self.look_at {
                let began = Instant::now();
                let counts = self.backends.ledger.count_letter_run(&self.run).await?;
                self.share(counts)?;
                self.law().await?;
                self.look_at = Instant::now() + LOOK.max(LOOK_SHARE * began.elapsed());
            }
            self.keep_the_rate().await?;
        }
        Ok(sent)
    }

    /// Ids of the next letters to take; `None` when there are no more.
    async fn next_page(
        &mut self,
        after: &mut Option<Uuid>,
        most: u32,
    ) -> Result<Option<Vec<Uuid>>, Halt> {
        let ledger = &self.backends.ledger;
        let Some(class) = self.class else {
            let ids = ledger.letter_ids(&self.filter, *after, most).await?;
            *after = ids.last().copied().or(*after);
            return Ok((!ids.is_empty()).then_some(ids));
        };
        let page = ledger.list_letters(&self.filter, LetterSort::Id, *after, most).await?;
        let Some(last) = page.last() else { return Ok(None) };
        *after = Some(last.letter_id);
        let judged = self.judge.judge(page).await?;
        let of_class = judged.iter().filter(|one| one.class == class);
        Ok(Some(of_class.map(|one| one.letter.letter_id).collect()))
    }

    /// Takes letters, publishes them, and marks them.
    async fn send(&mut self, ids: &[Uuid]) -> Result<u64, Halt> {
        let (ledger, environment) = (&self.backends.ledger, self.judge.environment());
        let taken = ledger.claim_letters(&self.run, environment, ids).await?;
        if taken.is_empty() {
            return Ok(0);
        }
        crash::point("replay.taken");
        let ids: Vec<_> = taken.iter().map(|letter| letter.letter_id).collect();
        if let Err(halt) = self.meet_items(&taken).await {
            self.backends.ledger.put_letters_back(&self.run, &ids).await?;
            return Err(halt);
        }
        let messages = messages(self.config, environment, &taken);
        let never = CancellationToken::new();
        let published = self.backends.publisher.publish_all(messages, &never);
        if timeout(LETTER_SEND_DEADLINE, published).await.is_err() {
            return Err(Halt::Stopped(Stopped::Broker));
        }
        crash::point("replay.published");
        ledger.letters_sent(&self.run, &ids).await?;
        crash::point("replay.marked");
        Ok(ids.len() as u64)
    }

    /// Nothing is sent of an item whose books are broken already.
    async fn meet_items(&mut self, letters: &[KeptLetter]) -> Result<(), Halt> {
        let items = letters.iter().filter_map(|letter| letter.subject.as_ref());
        let new: BTreeSet<_> =
            items.map(|subject| subject.item.clone()).filter(|i| !self.items.contains(i)).collect();
        self.items.extend(new.iter().cloned());
        self.lawful(&new.into_iter().collect::<Vec<_>>()).await
    }

    async fn law(&self) -> Result<(), Halt> {
        self.lawful(&self.items.iter().cloned().collect::<Vec<_>>()).await
    }

    async fn lawful(&self, items: &[ItemId]) -> Result<(), Halt> {
        match law::broken(&self.backends.ledger, items).await? {
            Some((item, violation)) => Err(Halt::Stopped(Stopped::BrokenLaw { item, violation })),
            None => Ok(()),
        }
    }

    fn share(&self, counts: RunCounts) -> Result<(), Halt> {
        let (failures, ended) = (counts.failures(), counts.ended());
        #[expect(clippy::cast_precision_loss, reason = "a share of far fewer than 2^53 letters")]
        let share = failures as f64 / ended.max(1) as f64;
        let enough = ended >= ENDS_FOR_A_SHARE.min(self.total);
        if enough && failures > 0 && share > self.options.stop_at_failures {
            return Err(Halt::Stopped(Stopped::Failures { failures, ended }));
        }
        Ok(())
    }

    /// Waits until every letter has ended, or until nothing has ended for so long.
    async fn until_ended(&self, on_step: &mut impl FnMut(ReplayStep)) -> Result<RunCounts, Halt> {
        let (mut fewest, mut since) = (u64::MAX, Instant::now());
        loop {
            let counts = self.backends.ledger.count_letter_run(&self.run).await?;
            if counts.undecided < fewest {
                (fewest, since) = (counts.undecided, Instant::now());
                on_step(ReplayStep::Awaiting(fewest));
            }
            if counts.undecided == 0 || since.elapsed() >= self.options.wait {
                return Ok(counts);
            }
            self.pause(POLL).await?;
        }
    }

    fn page_size(&self) -> u32 {
        // A quarter of a second's worth, so that a slow rate is a steady one.
        match self.options.rate {
            0 => LETTERS_PAGE,
            rate => (rate / 4).clamp(1, LETTERS_PAGE),
        }
    }

    async fn keep_the_rate(&self) -> Result<(), Halt> {
        if self.options.rate == 0 {
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of far fewer than 2^53 letters")]
        let due = Duration::from_secs_f64(self.sent as f64 / f64::from(self.options.rate));
        match due.checked_sub(self.began.elapsed()) {
            Some(early) => self.pause(early).await,
            None => Ok(()),
        }
    }

    async fn pause(&self, pause: Duration) -> Result<(), Halt> {
        tokio::select! {
            () = sleep(pause) => Ok(()),
            () = self.stop.cancelled() => Err(Halt::Stopped(Stopped::Asked)),
        }
    }
}

/// The messages of letters: reservations of one partition travel together, as they do from ingress.
/// None of the headers that a letter came with goes along.
fn messages(config: &Config, environment: EnvironmentId, letters: &[KeptLetter]) -> Vec<Outgoing> {
    let mut by_partition: BTreeMap<u16, Vec<Reservation>> = BTreeMap::new();
    let mut messages = Vec::new();
    for letter in letters {
        match contents(letter, environment) {
            LetterContents::Reservation(reservation) => {
                let partition = partition(&reservation.item, config.rabbitmq.partitions);
                by_partition.entry(partition).or_default().push(reservation);
            }
            LetterContents::Compensation { .. } => messages.push(Outgoing {
                route: Route::Compensations,
                headers: Vec::new(),
                body: letter.body.clone(),
            }),
            LetterContents::Foreign(_) | LetterContents::Unreadable => {}
        }
    }
    for (partition, reservations) in by_partition {
        for some in reservations.chunks(PUBLISH_BATCH) {
            let placed = ReservationsPlaced { environment, reservations: some.to_vec() };
            messages.push(Outgoing::reservations(partition, &placed));
        }
    }
    messages
}
