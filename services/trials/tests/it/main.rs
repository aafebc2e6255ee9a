//! The product as its buyers and operators meet it, on real backends, theme by theme.

mod damages;
mod hang_ups;
mod input;
mod ledger_decides;
mod limits;
mod lost_replies;
mod messages;
mod orders;
mod outages;
mod repeats;
mod sales;
mod stopping;
mod windows;
