//! Natural batching: while one call is on its way, the next batch gathers. An idle system waits
//! for nobody, a busy one calls less often.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use tokio::sync::oneshot;

/// Handles one batch of a lane; the replies come in the order of the batch.
type Handler<K, T, R> =
    dyn Fn(K, Vec<T>) -> Pin<Box<dyn Future<Output = Vec<R>> + Send>> + Send + Sync;

/// Gathers what belongs to the same lane. Lanes run side by side; within one lane there is one call at
/// a time, and a second one while half a batch waits: whoever is asked then never waits for us. A lane
/// exists only while it has work.
pub struct Batcher<K, T, R> {
    inner: Arc<Inner<K, T, R>>,
}

/// Why something was not handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotHandled {
    /// Too much is waiting already; nothing was begun.
    #[error("too much is waiting already")]
    Full,
    /// The handler panicked or gave too few replies; what it did is unknown.
    #[error("the batch was abandoned half-way")]
    Abandoned,
}

struct Inner<K, T, R> {
    max_batch: usize,
    max_waiting: usize,
    handler: Box<Handler<K, T, R>>,
    lanes: Mutex<Lanes<K, T, R>>,
}

struct Lanes<K, T, R> {
    waiting: usize,
    queues: HashMap<K, Lane<T, R>>,
}

struct Lane<T, R> {
    waiting: VecDeque<Waiting<T, R>>,
    /// Tasks that make calls.
    runners: u8,
}

/// Calls of one lane that are on their way side by side.
const MOST_RUNNERS: u8 = 2;

struct Waiting<T, R> {
    item: T,
    reply: oneshot::Sender<R>,
}

impl<K, T, R> Clone for Batcher<K, T, R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K, T, R> Batcher<K, T, R>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Send + 'static,
    R: Send + 'static,
{
    /// At most `max_batch` items a call, and at most `max_waiting` in all lanes together.
    pub fn new<F>(
        max_batch: usize,
        max_waiting: usize,
        handler: impl Fn(K, Vec<T>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<R>> + Send + 'static,
    {
        let lanes = Mutex::new(Lanes { waiting: 0, queues: HashMap::new() });
        let handler: Box<Handler<K, T, R>> =
            Box::new(move |lane, batch| Box::pin(handler(lane, batch)));
        Self { inner: Arc::new(Inner { max_batch, max_waiting, handler, lanes }) }
    }

    /// Hands an item over and waits for its reply. The item is handled even if the caller stops
    /// waiting.
    pub async fn submit(&self, lane: K, item: T) -> Result<R, NotHandled> {
        let (reply, answer) = oneshot::channel();
        if self.enqueue(&lane, Waiting { item, reply })? {
            tokio::spawn(run_lane(Arc::clone(&self.inner), lane));
        }
        answer.await.map_err(|_| NotHandled::Abandoned)
    }

    /// Puts an item into its lane; true when somebody more has to run it.
    fn enqueue(&self, lane: &K, waiting: Waiting<T, R>) -> Result<bool, NotHandled> {
        let mut lanes = self.inner.lanes();
        if lanes.waiting >= self.inner.max_waiting {
            return Err(NotHandled::Full);
        }
        lanes.waiting += 1;
        match lanes.queues.get_mut(lane) {
            Some(lane) => {
                lane.waiting.push_back(waiting);
                let is_behind = 2 * lane.waiting.len() >= self.inner.max_batch;
                let is_needed = is_behind && lane.runners < MOST_RUNNERS;
                lane.runners += u8::from(is_needed);
                Ok(is_needed)
            }
            None => {
                let first = Lane { waiting: VecDeque::from([waiting]), runners: 1 };
                lanes.queues.insert(lane.clone(), first);
                Ok(true)
            }
        }
    }
}

async fn run_lane<K, T, R>(inner: Arc<Inner<K, T, R>>, lane: K)
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Send + 'static,
    R: Send + 'static,
{
    while let Some(batch) = inner.next_batch(&lane) {
        let (items, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.item, waiting.reply)).unzip();
        // A panic costs this batch and not the lane: what the handler shares is its own concern, and
        // survives a panic of any other task as well.
        let answers = AssertUnwindSafe((inner.handler)(lane.clone(), items)).catch_unwind().await;
        for (reply, answer) in replies.into_iter().zip(answers.into_iter().flatten()) {
            // A caller that stopped waiting does not need its answer.
            let _ = reply.send(answer);
        }
    }
}

impl<K: Eq + Hash, T, R> Inner<K, T, R> {
    /// The lane's next batch; `None` ends its caller, and the last one removes the lane.
    fn next_batch(&self, lane: &K) -> Option<Vec<Waiting<T, R>>> {
        let mut lanes = self.lanes();
        let queue = lanes.queues.get_mut(lane)?;
        if queue.waiting.is_empty() {
            queue.runners -= 1;
            if queue.runners == 0 {
                lanes.queues.remove(lane);
            }
            return None;
        }
        let most = queue.waiting.len().min(self.max_batch);
        let batch: Vec<_> = queue.waiting.drain(..most).collect();
        lanes.waiting -= batch.len();
        Some(batch)
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes<K, T, R>> {
        // No code that can panic runs under this lock.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    type Seen = Arc<Mutex<Vec<Vec<u32>>>>;

    /// Calls that wait for a permit each, and remember their batches.
    fn gated(
        max_batch: usize,
        max_waiting: usize,
    ) -> (Batcher<u8, u32, u32>, Arc<Semaphore>, Seen) {
        let (gate, seen) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (gate_inside, seen_inside) = (Arc::clone(&gate), Arc::clone(&seen));
        let batcher = Batcher::new(max_batch, max_waiting, move |_lane, batch: Vec<u32>| {
            let (gate, seen) = (Arc::clone(&gate_inside), Arc::clone(&seen_inside));
            async move {
                seen.lock().expect("no panic").push(batch.clone());
                gate.acquire().await.expect("an open gate").forget();
                batch.into_iter().map(|item| item * 10).collect()
            }
        });
        (batcher, gate, seen)
    }

    async fn until(condition: impl Fn() -> bool) {
        while !condition() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_comes_during_a_call_is_the_next_batch() {
        let (batcher, gate, seen) = gated(12, 100);
        let mut answers = Vec::new();
        for item in 0..6 {
            let batcher = batcher.clone();
            answers.push(tokio::spawn(async move { batcher.submit(0, item).await }));
            if item == 0 {
                until(|| seen.lock().expect("no panic").len() == 1).await;
            }
        }
        until(|| batcher.inner.lanes().waiting == 5).await;
        gate.add_permits(2);
        for (item, answer) in (0..).zip(answers) {
            assert_eq!(answer.await.expect("no panic"), Ok(item * 10));
        }
        assert_eq!(*seen.lock().expect("no panic"), [vec![0], vec![1, 2, 3, 4, 5]]);
        until(|| batcher.inner.lanes().queues.is_empty()).await;
    }

    #[tokio::test]
    async fn a_second_call_begins_when_half_a_batch_waits_and_no_third() {
        let (batcher, gate, seen) = gated(4, 100);
        let submit = |item| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.submit(0, item).await })
        };
        let mut answers = vec![submit(0)];
        until(|| seen.lock().expect("no panic").len() == 1).await;
        answers.push(submit(1));
        until(|| batcher.inner.lanes().waiting == 1).await;
        answers.push(submit(2));
        until(|| seen.lock().expect("no panic").len() == 2).await;
        for (waiting, item) in (1..).zip(3..9) {
            answers.push(submit(item));
            until(|| batcher.inner.lanes().waiting == waiting).await;
        }
        gate.add_permits(4);
        for (item, answer) in (0..).zip(answers) {
            assert_eq!(answer.await.expect("no panic"), Ok(item * 10));
        }
        let seen = seen.lock().expect("no panic").clone();
        assert_eq!(seen, [vec![0], vec![1, 2], vec![3, 4, 5, 6], vec![7, 8]]);
        until(|| batcher.inner.lanes().queues.is_empty()).await;
    }

    #[tokio::test]
    async fn what_is_too_much_is_refused_before_it_begins() {
        let (batcher, gate, seen) = gated(4, 1);
        let first = tokio::spawn({
            let batcher = batcher.clone();
            async move { batcher.submit(0, 1).await }
        });
        until(|| seen.lock().expect("no panic").len() == 1).await;
        let second = tokio::spawn({
            let batcher = batcher.clone();
            async move { batcher.submit(0, 2).await }
        });
        until(|| batcher.inner.lanes().waiting == 1).await;
        assert_eq!(batcher.submit(0, 3).await, Err(NotHandled::Full));
        gate.add_permits(2);
        assert_eq!(first.await.expect("no panic"), Ok(10));
        assert_eq!(second.await.expect("no panic"), Ok(20));
    }

    #[tokio::test]
    async fn a_panic_costs_its_batch_and_not_its_lane() {
        let batcher = Batcher::new(1, 10, |_lane: u8, batch: Vec<u32>| async move {
            assert_ne!(batch, [13], "thirteen");
            batch
        });
        assert_eq!(batcher.submit(0, 13).await, Err(NotHandled::Abandoned));
        assert_eq!(batcher.submit(0, 7).await, Ok(7));
    }
}
