//! Which deliveries of a channel can be acknowledged together.

use std::collections::BTreeMap;

/// Finished deliveries of one channel. A broker numbers a channel's deliveries 1, 2, 3, …; an ack
/// with `multiple` covers *every* lower number, also deliveries that are still on their way to us.
/// So only an unbroken run of finished numbers may be acknowledged.
#[derive(Debug)]
pub(super) struct AckWindow<A> {
    /// The lowest number that is not finished.
    next: u64,
    /// Nothing stands for a delivery that went back to its queue: there is nothing to acknowledge.
    finished: BTreeMap<u64, Option<A>>,
}

impl<A> AckWindow<A> {
    pub(super) fn new() -> Self {
        Self { next: 1, finished: BTreeMap::new() }
    }

    /// Notes that a delivery is finished. Returns the newest delivery below which, itself included,
    /// all are finished, if that has become a newer one.
    pub(super) fn finish(&mut self, tag: u64, acker: A) -> Option<A> {
        self.finished.insert(tag, Some(acker));
        self.advance()
    }

    /// Notes that a delivery went back to its queue. Returns what [`finish`](Self::finish) does.
    pub(super) fn leave(&mut self, tag: u64) -> Option<A> {
        self.finished.insert(tag, None);
        self.advance()
    }

    fn advance(&mut self) -> Option<A> {
        let mut newest = None;
        while let Some(acker) = self.finished.remove(&self.next) {
            newest = acker.or(newest);
            self.next += 1;
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unbroken_run_is_acknowledged() {
        let mut window = AckWindow::new();
        assert_eq!(window.finish(2, 2), None, "1 is still at work");
        assert_eq!(window.finish(4, 4), None);
        assert_eq!(window.finish(1, 1), Some(2), "1 and 2 together; 3 is not finished");
        assert_eq!(window.finish(3, 3), Some(4));
        assert_eq!(window.finish(5, 5), Some(5));
        assert!(window.finished.is_empty());
    }

    #[test]
    fn what_went_back_is_never_acknowledged_and_hides_nothing() {
        let mut window = AckWindow::new();
        assert_eq!(window.finish(2, 2), None);
        assert_eq!(window.leave(3), None);
        assert_eq!(window.leave(1), Some(2), "2 is finished, 1 and 3 are not ours any more");
        assert_eq!(window.leave(4), None);
        assert_eq!(window.finish(5, 5), Some(5));
    }
}
