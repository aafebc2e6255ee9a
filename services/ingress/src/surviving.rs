//! Work that goes on when whoever waits for it goes away.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// A future that is not lost with its owner: dropped half-way, it goes on in a task of its own. Until
/// then it costs none.
pub(crate) struct Surviving<F: Future<Output: Send + 'static> + Send + 'static> {
    /// `None` once it has ended.
    future: Option<Pin<Box<F>>>,
    tasks: TaskTracker,
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Surviving<F> {
    pub(crate) fn new(tasks: &TaskTracker, future: F) -> Self {
        Self { future: Some(Box::pin(future)), tasks: tasks.clone() }
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Future for Surviving<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.future.as_mut().expect("polled after its end");
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Drop for Surviving<F> {
    fn drop(&mut self) {
        // Without a runtime the process is ending.
        if let Some(future) = self.future.take()
            && let Ok(runtime) = Handle::try_current()
        {
            self.tasks.spawn_on(future, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_is_dropped_half_way_goes_on() {
        let tasks = TaskTracker::new();
        let (go_on, may_go_on) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel();
        let mut surviving = Surviving::new(&tasks, async move {
            may_go_on.await.expect("told to");
            end.send("done").expect("somebody listens");
        });
        let begun = futures_util::poll!(Pin::new(&mut surviving));
        assert!(begun.is_pending());
        assert_eq!(tasks.len(), 0, "no task before it is needed");
        drop(surviving);
        go_on.send(()).expect("it goes on");
        assert_eq!(ended.await, Ok("done"));
    }

    #[tokio::test]
    async fn what_has_ended_leaves_nothing_behind() {
        let tasks = TaskTracker::new();
        assert_eq!(Surviving::new(&tasks, async { 7 }).await, 7);
        assert_eq!(tasks.len(), 0);
    }
}
