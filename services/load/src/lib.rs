//! Rehearses a sale.
//!
//! | file | step |
//! |---|---|
//! | [`client`] | one keep-alive HTTP/1.1 connection of a buyer |
//! | [`known`] | an ingress has heard of the item |
//! | [`crowd`] | many buyers wait at a barrier and buy at once, each as a well-behaved client |
//! | [`settle`] | every accepted purchase is followed until it is final |
//! | [`report`] | what the buyers were told, next to what the books say: the verdict |

pub mod client;
pub mod crowd;
pub mod known;
pub mod report;
pub mod settle;
