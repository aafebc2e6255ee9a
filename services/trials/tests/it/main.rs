//! The product as its buyers and operators meet it, on real backends, theme by theme.

mod admission;
mod broker_trouble;
mod crashes;
mod damages;
mod hang_ups;
mod hopeless;
mod input;
mod ledger_decides;
mod letters;
mod letters_cut_short;
mod letters_discarded;
mod limits;
mod locks;
mod long_outages;
mod lost_replies;
mod messages;
mod numbers;
mod orders;
mod outages;
mod overdue;
mod repeats;
mod sales;
mod soak;
mod stopping;
mod windows;
