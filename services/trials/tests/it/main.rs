//! The product as its buyers and operators meet it, on real backends, theme by theme.

mod admission;
mod broker_trouble;
mod crashes;
mod damages;
mod hang_ups;
mod hopeless;
mod input;
mod ledger_decides;
mod ledger_restored;
mod limits;
mod locks;
mod long_outages;
mod lost_replies;
mod messages;
mod numbers;
mod orders;
mod outages;
mod overdue;
mod reconcile;
mod redis_losses;
mod repeats;
mod sales;
mod soak;
mod stopping;
mod warm_up;
mod windows;
