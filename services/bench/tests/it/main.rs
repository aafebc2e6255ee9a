//! A report, as its readers get it; and the rivals, who must sell what is there for their speed to
//! mean something.

mod page;
mod rivals;
