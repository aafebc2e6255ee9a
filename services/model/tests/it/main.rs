//! The protocol, checked: nothing goes wrong in any scenario while every rule is in force, and
//! without a rule something does.

mod rules;
mod scenarios;
