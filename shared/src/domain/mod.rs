//! Values and decisions of a sale. Nothing here does I/O, reads a clock, or knows how it is stored.

mod admission;
mod cause;
mod decision;
mod difference;
mod drain;
mod gathering;
mod hold;
mod ids;
mod law;
mod letter;
mod letter_class;
mod order;
mod overdue;
mod placement;
mod quantity;
mod readiness;
mod reservation;
mod resolution;
mod sale;
mod time;

pub use admission::{Admission, Misfit, Onlooker, StoreBinding, admit};
pub use cause::{Cause, Record, cause};
pub use decision::{Change, Decided, Decision, Standing, decide};
pub use difference::{
    Difference, LedgerSide, OpenHold, StockSide, difference, spread, total_differences,
    waiting_units,
};
pub use drain::{Drain, DrainLimits};
pub use gathering::{Move, Shortage, gather};
pub use hold::{HoldEvent, HoldStanding, HoldState, NoSuchStep};
pub use ids::{
    BuyerId, EnvironmentId, IdempotencyKey, InvalidText, ItemId, Namespace, RequestId,
    ReservationId, StoreId,
};
pub use law::{Books, Violation, broken_laws};
pub use letter::{LetterEvent, LetterKind, LetterState, NoSuchLetterStep, fingerprint};
pub use letter_class::{
    LetterClass, LetterContents, LetterEvidence, ReplayEffect, classify, foresee,
};
pub use order::{InvalidReason, Order, OrderState, Reason, Verdict};
pub use overdue::{OverdueStep, Whereabouts, finish_overdue};
pub use placement::{BucketCount, divide, home_bucket, partition};
pub use quantity::{InvalidQuantity, Quantity};
pub use readiness::{BucketStanding, BucketState, Readiness, readiness};
pub use reservation::Reservation;
pub use resolution::{Resolution, resolve};
pub use sale::{InvalidSale, Sale, Window};
pub use time::UnixMillis;
