//! Whether a process may work: do its namespace, its ledger and its Redis belong together?

use std::time::Duration;

use super::{Namespace, StoreId, UnixMillis};

/// The one Redis that may sell for a ledger, as that ledger names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreBinding {
    pub namespace: Namespace,
    pub store: StoreId,
    /// When a reconciler last saw the store, by the clock of the ledger.
    pub seen_at: UnixMillis,
    /// How long ago that was when the ledger was asked, by the same clock.
    pub unseen_for: Duration,
}

impl StoreBinding {
    /// When the ledger was asked, by its own clock.
    fn asked_at(&self) -> UnixMillis {
        self.seen_at.plus(self.unseen_for)
    }
}

/// What becomes of a process that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// All three belong together.
    Admitted,
    /// Nothing is bound yet, so nothing is warm: it may start, and wait for the first warm-up.
    Unbound,
    /// Redis is empty and nobody has seen the old store for long: it may start, and wait for a
    /// reconciler to bind a new one.
    StoreLost,
    /// Redis is empty and the store was seen just now: either it has just been lost, or this is
    /// another Redis. Only looking again can tell.
    Wait,
    Refused(Misfit),
}

/// What does not belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// The ledger belongs to a deployment of another name.
    OtherNamespace { theirs: Namespace },
    /// Redis is a store, and the ledger has never had one.
    StrangeStore { found: StoreId },
    /// Redis is another store than the one that the ledger names.
    OtherStore { found: StoreId, named: StoreId },
    /// Redis is empty, and somebody sees the store of the ledger elsewhere.
    SeenElsewhere { named: StoreId },
}

/// Compares. `redis` must have been read before `ledger`: a new store is written there first, so
/// that whoever reads in the opposite order never sees it in Redis alone.
pub fn admit(
    namespace: &Namespace,
    ledger: Option<&StoreBinding>,
    redis: Option<StoreId>,
    unseen_enough: Duration,
) -> Admission {
    match (ledger, redis) {
        (None, None) => Admission::Unbound,
        (None, Some(found)) => Admission::Refused(Misfit::StrangeStore { found }),
        (Some(bound), _) if bound.namespace != *namespace => {
            Admission::Refused(Misfit::OtherNamespace { theirs: bound.namespace.clone() })
        }
        (Some(bound), Some(found)) if found == bound.store => Admission::Admitted,
        (Some(bound), Some(found)) => {
            Admission::Refused(Misfit::OtherStore { found, named: bound.store })
        }
        (Some(bound), None) if bound.unseen_for >= unseen_enough => Admission::StoreLost,
        (Some(_), None) => Admission::Wait,
    }
}

/// One who looks until it is clear.
#[derive(Debug)]
pub struct Onlooker {
    namespace: Namespace,
    unseen_enough: Duration,
    seen_every: Duration,
    /// What the ledger said when Redis was first found empty.
    empty_since: Option<StoreBinding>,
    /// What the last look spoke for.
    suspected: Option<Misfit>,
}

impl Onlooker {
    /// A store counts as lost when nobody has seen it for `unseen_enough`; while it is there, it is
    /// seen every `seen_every`.
    pub fn new(namespace: &Namespace, unseen_enough: Duration, seen_every: Duration) -> Self {
        let namespace = namespace.clone();
        Self { namespace, unseen_enough, seen_every, empty_since: None, suspected: None }
    }

    /// What this look says, after all those before. The two backends cannot be read at one instant,
    /// so it takes two looks that agree to refuse; the first of them says `Wait`.
    pub fn look(&mut self, ledger: Option<&StoreBinding>, redis: Option<StoreId>) -> Admission {
        let mut admission = admit(&self.namespace, ledger, redis, self.unseen_enough);
        self.empty_since = match (&admission, ledger) {
            (Admission::Wait, Some(now)) => match self.empty_since.take() {
                Some(first) if first.store == now.store => {
                    if self.is_seen_elsewhere(&first, now) {
                        let misfit = Misfit::SeenElsewhere { named: now.store };
                        admission = Admission::Refused(misfit);
                    }
                    Some(first)
                }
                // The first empty look, or a reconciler has just bound another store.
                _ => Some(now.clone()),
            },
            _ => None,
        };
        let Admission::Refused(misfit) = &admission else {
            self.suspected = None;
            return admission;
        };
        if self.suspected.replace(misfit.clone()).as_ref() == Some(misfit) {
            admission
        } else {
            Admission::Wait
        }
    }

    /// Somebody has seen the store well after this Redis was found empty. Somebody who saw it just
    /// before it was lost may tell the ledger a little later.
    fn is_seen_elsewhere(&self, first: &StoreBinding, now: &StoreBinding) -> bool {
        now.seen_at > first.asked_at().plus(self.seen_every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: Duration = Duration::from_secs(20);
    const EVERY: Duration = Duration::from_secs(5);
    const ASKED_AT: u64 = 1_000_000;

    fn ours() -> Namespace {
        "ours".parse().expect("a namespace")
    }

    /// Asked at this second after the first look, `unseen` seconds after the store was last seen.
    fn bound(store: StoreId, second: u64, unseen: u64) -> StoreBinding {
        StoreBinding {
            namespace: ours(),
            store,
            seen_at: UnixMillis(ASKED_AT + 1_000 * second - 1_000 * unseen),
            unseen_for: Duration::from_secs(unseen),
        }
    }

    fn onlooker() -> Onlooker {
        Onlooker::new(&ours(), ENOUGH, EVERY)
    }

    #[test]
    fn every_combination_has_its_answer() {
        let (store, other) = (StoreId::mint(), StoreId::mint());
        let (fresh, old) = (bound(store, 0, 19), bound(store, 0, 20));
        let theirs: Namespace = "theirs".parse().expect("a namespace");
        let foreign = StoreBinding { namespace: theirs.clone(), ..fresh.clone() };
        let refused = |misfit| Admission::Refused(misfit);
        let other_namespace = refused(Misfit::OtherNamespace { theirs });
        let other_store = refused(Misfit::OtherStore { found: other, named: store });
        for (ledger, redis, expected) in [
            (None, None, Admission::Unbound),
            (None, Some(store), refused(Misfit::StrangeStore { found: store })),
            (Some(&fresh), Some(store), Admission::Admitted),
            (Some(&old), Some(store), Admission::Admitted),
            (Some(&fresh), Some(other), other_store.clone()),
            (Some(&old), Some(other), other_store),
            (Some(&fresh), None, Admission::Wait),
            (Some(&old), None, Admission::StoreLost),
            (Some(&foreign), None, other_namespace.clone()),
            (Some(&foreign), Some(store), other_namespace.clone()),
            (Some(&foreign), Some(other), other_namespace),
        ] {
            assert_eq!(admit(&ours(), ledger, redis, ENOUGH), expected, "{ledger:?} {redis:?}");
        }
    }

    #[test]
    fn it_takes_two_looks_that_agree_to_refuse() {
        let (store, other) = (StoreId::mint(), StoreId::mint());
        let mut onlooker = onlooker();
        let now = bound(store, 0, 1);
        assert_eq!(onlooker.look(Some(&now), Some(other)), Admission::Wait);
        // It was only being bound: all is well.
        assert_eq!(onlooker.look(Some(&now), Some(store)), Admission::Admitted);
        assert_eq!(onlooker.look(Some(&now), Some(other)), Admission::Wait);
        let third = StoreId::mint();
        assert_eq!(onlooker.look(Some(&now), Some(third)), Admission::Wait);
        let misfit = Misfit::OtherStore { found: third, named: store };
        assert_eq!(onlooker.look(Some(&now), Some(third)), Admission::Refused(misfit));
    }

    #[test]
    fn an_empty_redis_is_waited_for_until_the_store_was_unseen_for_long() {
        let store = StoreId::mint();
        let mut onlooker = onlooker();
        for second in 0..17 {
            let now = bound(store, second, 3 + second);
            assert_eq!(onlooker.look(Some(&now), None), Admission::Wait, "second {second}");
        }
        assert_eq!(onlooker.look(Some(&bound(store, 17, 20)), None), Admission::StoreLost);
    }

    #[test]
    fn an_empty_redis_is_the_wrong_one_when_the_store_is_seen_meanwhile() {
        let store = StoreId::mint();
        let mut onlooker = onlooker();
        assert_eq!(onlooker.look(Some(&bound(store, 0, 4)), None), Admission::Wait);
        // Seen before the loss, told after it: this proves nothing.
        assert_eq!(onlooker.look(Some(&bound(store, 6, 1)), None), Admission::Wait);
        assert_eq!(onlooker.look(Some(&bound(store, 7, 1)), None), Admission::Wait);
        let misfit = Misfit::SeenElsewhere { named: store };
        assert_eq!(onlooker.look(Some(&bound(store, 8, 2)), None), Admission::Refused(misfit));
    }

    #[test]
    fn a_store_that_is_bound_while_somebody_waits_is_no_proof_against_him() {
        let (old, new) = (StoreId::mint(), StoreId::mint());
        let mut onlooker = onlooker();
        assert_eq!(onlooker.look(Some(&bound(old, 0, 15)), None), Admission::Wait);
        // The reconciler is between the ledger and Redis.
        assert_eq!(onlooker.look(Some(&bound(new, 6, 0)), None), Admission::Wait);
        assert_eq!(onlooker.look(Some(&bound(new, 7, 1)), None), Admission::Wait);
        assert_eq!(onlooker.look(Some(&bound(new, 8, 0)), Some(new)), Admission::Admitted);
    }
}
