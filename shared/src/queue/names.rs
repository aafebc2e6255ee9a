//! What exchanges and queues are called, all under the namespace.

use std::fmt;

use crate::domain::Namespace;

/// A queue that services consume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Reservations of one partition of items.
    Orders(u16),
    /// Reservations whose queue or binding was gone.
    Unrouted,
    Compensations,
    /// Whatever nobody could handle.
    Dead,
}

/// Where a message is published to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Orders { partition: u16 },
    Compensations,
    Dead,
}

/// Builds names of the form `<ns>.<what>`.
#[derive(Debug, Clone)]
pub(super) struct Names {
    namespace: Namespace,
}

impl Names {
    pub(super) fn new(namespace: &Namespace) -> Self {
        Self { namespace: namespace.clone() }
    }

    pub(super) fn queue(&self, queue: Queue) -> String {
        self.name(queue)
    }

    /// Direct; the routing key is the partition.
    pub(super) fn reservations(&self) -> String {
        self.name("reservations")
    }

    /// Fanout; takes what `reservations` cannot route.
    pub(super) fn unrouted(&self) -> String {
        self.name("unrouted")
    }

    pub(super) fn compensations(&self) -> String {
        self.name("compensations")
    }

    pub(super) fn dead(&self) -> String {
        self.name("dead")
    }

    fn name(&self, what: impl fmt::Display) -> String {
        format!("{}.{what}", self.namespace)
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orders(partition) => write!(f, "orders.{partition}"),
            Self::Unrouted => f.write_str("orders.unrouted"),
            Self::Compensations => f.write_str("compensations"),
            Self::Dead => f.write_str("dead"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_change() {
        let names = Names::new(&"shop-eu".parse().expect("a namespace"));
        assert_eq!(names.queue(Queue::Orders(3)), "shop-eu.orders.3");
        assert_eq!(names.queue(Queue::Unrouted), "shop-eu.orders.unrouted");
        assert_eq!(names.queue(Queue::Compensations), "shop-eu.compensations");
        assert_eq!(names.queue(Queue::Dead), "shop-eu.dead");
        assert_eq!(names.reservations(), "shop-eu.reservations");
        assert_eq!(names.unrouted(), "shop-eu.unrouted");
    }
}
