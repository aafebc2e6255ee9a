//! An exhaustive check of the protocol: every interleaving of buyers, processes and faults in small
//! worlds, searched to the end. Never shipped, and made of nothing but the standard library.
//!
//! In the order of reading: what a moment is ([`state`], [`errand`]); the worlds
//! ([`scenario`], [`scenarios`]); what can happen in them (the scripts [`stock`], the transactions
//! [`ledger`], the processes [`ingress`], [`consumer`], [`compensator`], [`reconciler`],
//! [`warming`], [`correction`], and [`mishaps`]); what must hold ([`laws`]); the rules that can be
//! switched off ([`protections`]) and what shows that each is needed ([`shown`]); the search ([`search`], [`seen`]); its words ([`report`]).
//!
//! The model is written from the protocol, not from the code: it shares nothing with what it
//! checks. A change of a script or of the order of two steps belongs in both.

pub mod compensator;
pub mod consumer;
pub mod correction;
pub mod errand;
pub mod ingress;
pub mod laws;
pub mod ledger;
pub mod mishaps;
pub mod protections;
pub mod reconciler;
pub mod report;
pub mod scenario;
pub mod scenarios;
pub mod search;
pub mod seen;
pub mod shown;
pub mod state;
pub mod step;
pub mod stock;
pub mod warming;
