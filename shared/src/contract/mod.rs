//! What crosses a process boundary through the queue: bodies, their versions, and what can be
//! wrong with them. Delivery is at least once; every message may come twice, late, or never.

mod compensation;
mod dead_letter;
mod decode;
mod reservations;

pub use compensation::{Compensation, decode_compensation, encode_compensation};
pub use dead_letter::DeadLetter;
pub use decode::DecodeError;
pub use reservations::{ReservationsPlaced, decode_reservations, encode_reservations};
