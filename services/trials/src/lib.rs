//! Proofs about the whole line; never shipped. Nothing here is a stand-in: the services run in this
//! process as they run in theirs, and the backends are real.
//!
//! | file | what it is |
//! |---|---|
//! | [`line`] | a world of its own, the services that run in it, and its books |
//! | [`buyer`] | somebody who buys over HTTP, and what they are told |
//! | [`desk`] | an operator at work on dead letters |
//! | [`messages`] | what is published past ingress, and what arrives in the dead letters |
//! | [`proxy`] | a wire to a backend that can lose, delay and cut |
//! | [`holder`] | a process that has an item's lock, and may be frozen |
//! | [`reconciling`] | a process that corrects an item, and stands still in the middle of it |
//! | [`settings`] | what a process of its own is told |
//! | [`outside`] | somebody who changes Redis past every script |
//! | [`stack`] | backends of a test's own, which may be killed |
//! | [`throng`] | buyers who go on through whatever befalls the line |
//! | [`until`] | waiting for a condition, with a bound |
//!
//! [`letters_bench`] measures work on many dead letters, [`correction_bench`] how long a correction keeps
//! buyers waiting.
//!
//! The soak lets services run as processes and everything fail, with the binary `trial`:
//!
//! | file | what it is |
//! |---|---|
//! | [`faults`] | what goes wrong and when, by a seed |
//! | [`grounds`], [`processes`] | the backends and the services that it happens to |
//! | [`injection`], [`meddler`] | let it happen |
//! | [`crowd`] | who buys meanwhile, and what they hear |
//! | [`auditor`] | judges by nothing but what was asked and answered |
//! | [`round`], [`soak`] | a sale with its verdict; one after the other |

pub mod auditor;
pub mod buyer;
pub mod correction_bench;
pub mod crowd;
pub mod desk;
pub mod faults;
pub mod grounds;
pub mod holder;
pub mod injection;
pub mod letters_bench;
pub mod line;
pub mod meddler;
pub mod messages;
pub mod outside;
pub mod processes;
pub mod proxy;
pub mod reconciling;
pub mod round;
pub mod settings;
pub mod soak;
pub mod stack;
pub mod throng;
pub mod until;
