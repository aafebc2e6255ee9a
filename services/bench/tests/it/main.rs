//! A report, as its readers get it.

mod page;
