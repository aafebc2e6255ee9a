//! Which deliveries of a channel can be acknowledged together.

use std::collections::BTreeMap;

/// Finished deliveries of one channel. A broker numbers a channel's deliveries 1, 2, 3, …; an ack
/// with `multiple` covers *every* lower number, also deliveries that are still on their way to us.
/// So only an unbroken run of finished numbers may be acknowledged.
#[derive(Debug)]
pub(super) struct AckWindow<A> {
    /// The lowest number that is not finished.
    next: u64,
    /// Without an acker: put back, so there is nothing left to acknowledge.
    finished: BTreeMap<u64, Option<A>>,
}

impl<A> AckWindow<A> {
    pub(super) fn new() -> Self {
        Self { next: 1, finished: BTreeMap::new() }
    }

    /// Notes that a delivery is finished. Returns the newest delivery to acknowledge below which,
    /// itself included, all are finished, if that has become a newer one.
    pub(super) fn finish(&mut self, tag: u64, acker: A) -> Option<A> {
        self.note(tag, Some(acker))
    }

    /// Notes that a delivery was put back: it holds up the others no longer, and cannot be the one
    /// that acknowledges them.
    pub(super) fn put_back(&mut self, tag: u64) -> Option<A> {
        self.note(tag, None)
    }

    fn note(&mut self, tag: u64, acker: Option<A>) -> Option<A> {
        self.finished.insert(tag, acker);
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
    fn what_was_put_back_acknowledges_nothing_itself() {
        let mut window = AckWindow::new();
        assert_eq!(window.put_back(2), None);
        assert_eq!(window.finish(1, 1), Some(1), "1 alone; 2 is the broker's again");
        assert_eq!(window.finish(4, 4), None);
        assert_eq!(window.put_back(3), Some(4));
        assert_eq!(window.put_back(5), None);
    }
}
