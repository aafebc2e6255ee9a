//! The ledger's word on a request. An order never changes its class.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::{BuyerId, ItemId, Quantity, RequestId, Reservation, ReservationId};

/// Why an order was rejected or expired: 1–64 characters of `a–z 0–9 _`, stable, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reason(Cow<'static, str>);

/// A text that is not a reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a reason must be 1–64 characters of a–z 0–9 _")]
pub struct InvalidReason;

/// How the ledger decided a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderState {
    Confirmed,
    /// The ledger looked at the reservation and could not sell.
    Rejected(Reason),
    /// Somebody gave the stock back before the ledger had decided; a late message finds this.
    Expired(Reason),
}

impl OrderState {
    /// What it is called, whatever its reason.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Rejected(_) => "rejected",
            Self::Expired(_) => "expired",
        }
    }
}

/// The ledger row of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub request_id: RequestId,
    /// The reservation that was decided. A request may have others; they are surplus.
    pub reservation_id: ReservationId,
    pub item: ItemId,
    pub buyer: BuyerId,
    pub quantity: Quantity,
    pub state: OrderState,
}

/// What a restored hold says of its request: `rejected:<reason>`, `expired:<reason>`, or
/// `confirmed:<reservation id>` when only a surplus reservation was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Confirmed(ReservationId),
    Rejected(Reason),
    Expired(Reason),
}

impl Reason {
    /// The ledger had fewer units than were asked for.
    pub const SOLD_OUT: Self = Self(Cow::Borrowed("sold_out"));
    /// The buyer would have had more than the limit.
    pub const LIMIT_REACHED: Self = Self(Cow::Borrowed("limit_reached"));
    /// The request is decided under another reservation.
    pub const SURPLUS: Self = Self(Cow::Borrowed("surplus"));
    /// A compensation came for a request that the ledger had not decided.
    pub const COMPENSATED: Self = Self(Cow::Borrowed("compensated"));
    /// An operator discarded its dead letter.
    pub const DISCARDED: Self = Self(Cow::Borrowed("discarded"));
    /// Its dead letter waited longer than the patience after the sale.
    pub const OUT_OF_PATIENCE: Self = Self(Cow::Borrowed("out_of_patience"));
}

impl FromStr for Reason {
    type Err = InvalidReason;

    fn from_str(text: &str) -> Result<Self, InvalidReason> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(Cow::Owned(text.to_owned())))
        } else {
            Err(InvalidReason)
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Order {
    /// The decision of a reservation.
    pub fn of(reservation: &Reservation, state: OrderState) -> Self {
        Self {
            request_id: reservation.request_id,
            reservation_id: reservation.reservation_id,
            item: reservation.item.clone(),
            buyer: reservation.buyer.clone(),
            quantity: reservation.quantity,
            state,
        }
    }

    /// What the hold of a reservation of this request has to say when its stock goes back.
    pub fn verdict(&self) -> Verdict {
        match &self.state {
            OrderState::Confirmed => Verdict::Confirmed(self.reservation_id),
            OrderState::Rejected(reason) => Verdict::Rejected(reason.clone()),
            OrderState::Expired(reason) => Verdict::Expired(reason.clone()),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confirmed(reservation_id) => write!(f, "confirmed:{reservation_id}"),
            Self::Rejected(reason) => write!(f, "rejected:{reason}"),
            Self::Expired(reason) => write!(f, "expired:{reason}"),
        }
    }
}

impl FromStr for Verdict {
    type Err = InvalidReason;

    fn from_str(text: &str) -> Result<Self, InvalidReason> {
        match text.split_once(':').ok_or(InvalidReason)? {
            ("confirmed", id) => id.parse().map(Self::Confirmed).map_err(|_| InvalidReason),
            ("rejected", reason) => reason.parse().map(Self::Rejected),
            ("expired", reason) => reason.parse().map(Self::Expired),
            _ => Err(InvalidReason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_reads_back_as_it_was_written() {
        for verdict in [
            Verdict::Confirmed(ReservationId::mint()),
            Verdict::Rejected(Reason::SOLD_OUT),
            Verdict::Expired("discarded".parse().expect("a reason")),
        ] {
            assert_eq!(verdict.to_string().parse(), Ok(verdict));
        }
        for bad in ["", "confirmed", "confirmed:1", "sold:out", "rejected:No"] {
            assert_eq!(bad.parse::<Verdict>(), Err(InvalidReason), "{bad}");
        }
    }
}
