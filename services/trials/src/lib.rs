//! Proofs about the whole line; never shipped. Nothing here is a stand-in: the services run in this
//! process as they run in theirs, and the backends are real.
//!
//! | file | what it is |
//! |---|---|
//! | [`line`] | a world of its own, the services that run in it, and its books |
//! | [`buyer`] | somebody who buys over HTTP, and what they are told |
//! | [`messages`] | what is published past ingress, and what arrives in the dead letters |
//! | [`proxy`] | a wire to a backend that can lose, delay and cut |
//! | [`stack`] | backends of a test's own, which may be killed |
//! | [`until`] | waiting for a condition, with a bound |

pub mod buyer;
pub mod line;
pub mod messages;
pub mod proxy;
pub mod stack;
pub mod until;
