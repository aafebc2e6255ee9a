//! What is under way: messages in queues, work in the hands of processes, parked letters.

use crate::state::Reservation;

/// Most things under way at once. Going over it is a panic, never a silent bound.
const MOST: usize = 14;

/// Most copies of one message that wait at once; a publish that would make a third is not tried.
pub const COPIES: usize = 2;

/// One thing under way.
///
/// What a process has read is not part of it. An order, once there, never changes: so a process that
/// has committed or asked the ledger and goes on later is the same as one that dies, gets its
/// message again and finds the decision. And a message in the hands of somebody who is about to
/// publish it is the same as one that waits in its queue: queues are as slow as they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Errand {
    /// Ingress lost the reply of `reserve` and will ask again under the same reservation id.
    Asking(Reservation),
    /// Ingress has the hold and will publish.
    Publishing(Reservation),
    /// A reservation's message, in its queue or with a consumer.
    Message(Reservation),
    /// A compensation, in its queue or with a compensator.
    Compensation(Reservation),
    /// A letter that waits for an operator, or is being discarded.
    Parked(Reservation),
    /// The reconciler has claimed an overdue hold.
    Look(Reservation),
}

/// A multiset of errands, each as its code. It is kept sorted, so that states that differ in nothing
/// but the order of arrival are one state; the queues thereby reorder as they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bag([u8; MOST]);

/// Comes after every code.
const NOTHING: u8 = u8::MAX;

impl Bag {
    pub const EMPTY: Self = Self([NOTHING; MOST]);

    pub fn add(&mut self, errand: Errand) {
        assert!(self.0[MOST - 1] == NOTHING, "more than {MOST} things are under way");
        let code = errand.code();
        let at = self.0.iter().position(|other| *other >= code).unwrap_or(MOST - 1);
        self.0.copy_within(at..MOST - 1, at + 1);
        self.0[at] = code;
    }

    pub fn remove(&mut self, errand: Errand) {
        let code = errand.code();
        if let Some(at) = self.0.iter().position(|other| *other == code) {
            self.0.copy_within(at + 1.., at);
            self.0[MOST - 1] = NOTHING;
        }
    }

    pub fn replace(&mut self, errand: Errand, by: Errand) {
        self.remove(errand);
        self.add(by);
    }

    /// Adds a message unless enough copies of it are under way.
    pub fn publish(&mut self, errand: Errand) {
        if self.has_room(errand) {
            self.add(errand);
        }
    }

    pub fn has_room(&self, errand: Errand) -> bool {
        self.iter().filter(|one| *one == errand).count() < COPIES
    }

    pub fn iter(&self) -> impl Iterator<Item = Errand> + use<> {
        self.0.into_iter().take_while(|code| *code != NOTHING).map(Errand::of_code)
    }

    /// Every errand once, however many copies there are.
    pub fn distinct(&self) -> impl Iterator<Item = Errand> + use<> {
        let mut last = None;
        self.iter().filter(move |errand| last.replace(*errand) != Some(*errand))
    }

    pub fn any(&self, wanted: impl Fn(Errand) -> bool) -> bool {
        self.iter().any(wanted)
    }

    pub fn is_empty(&self) -> bool {
        self.0[0] == NOTHING
    }
}

impl Errand {
    fn code(self) -> u8 {
        let (kind, of) = match self {
            Self::Asking(of) => (0, of),
            Self::Publishing(of) => (1, of),
            Self::Message(of) => (2, of),
            Self::Compensation(of) => (3, of),
            Self::Parked(of) => (4, of),
            Self::Look(of) => (5, of),
        };
        (kind << 5) | (of.request << 3) | of.number
    }

    fn of_code(code: u8) -> Self {
        let of = Reservation { request: (code >> 3) & 3, number: code & 7 };
        match code >> 5 {
            0 => Self::Asking(of),
            1 => Self::Publishing(of),
            2 => Self::Message(of),
            3 => Self::Compensation(of),
            4 => Self::Parked(of),
            _ => Self::Look(of),
        }
    }
}
