//! What a dead letter is worth, and what a replay of it would do.

use std::fmt;
use std::str::FromStr;

use super::{
    BuyerId, Decision, EnvironmentId, HoldStanding, InvalidText, ItemId, Order, OrderState,
    RequestId, Reservation, ReservationId, UnixMillis, Window,
};

/// A letter, judged against the ledger and Redis as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LetterClass {
    /// Its stock is still held for it, and the ledger has enough: a replay sells it.
    WouldConfirm,
    /// A replay only gives its stock back: the ledger has too few, or it is a compensation.
    WouldRestore,
    /// The ledger has sold this request.
    AlreadyConfirmed,
    /// The ledger has refused this request.
    AlreadyRejected,
    /// Its stock went back, and may be somebody else's.
    HoldRestored,
    /// Redis holds nothing for it, nor remembers that it did.
    HoldMissing,
    /// Nothing is decided, and the sale is over.
    SaleEnded,
    /// Its bytes are no message that this release knows.
    Undecodable,
    /// It belongs to another environment.
    ForeignEnvironment,
}

/// What a letter's bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterContents {
    Reservation(Reservation),
    Compensation {
        request_id: RequestId,
        reservation_id: ReservationId,
        item: ItemId,
        buyer: BuyerId,
    },
    Foreign(EnvironmentId),
    Unreadable,
}

/// What ledger and Redis say about a letter.
#[derive(Debug, Clone, Copy)]
pub struct LetterEvidence<'a> {
    /// The order of its request.
    pub order: Option<&'a Order>,
    /// What the ledger would say of its reservation now; `None` for anything but a reservation.
    pub decision: Option<&'a Decision>,
    /// The record of its request in Redis: whose it is, and where it stands.
    pub hold: Option<(ReservationId, &'a HoldStanding)>,
    /// The sale of its item, if the ledger has one.
    pub window: Option<Window>,
    pub now: UnixMillis,
}

/// What a replay would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayEffect {
    /// A new order.
    Decides(OrderState),
    /// Nothing new: the request is decided, and what followed from it is repeated.
    Repeats(OrderState),
    /// The request is decided under another reservation; this one's stock goes back.
    Surplus,
    /// A compensation: stock goes back, unless it has already.
    Restores,
    /// It would come back to the dead letters.
    DiesAgain,
    /// It is not sent at all.
    NotSent,
}

impl LetterClass {
    pub const ALL: [Self; 9] = [
        Self::WouldConfirm,
        Self::WouldRestore,
        Self::AlreadyConfirmed,
        Self::AlreadyRejected,
        Self::HoldRestored,
        Self::HoldMissing,
        Self::SaleEnded,
        Self::Undecodable,
        Self::ForeignEnvironment,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::WouldConfirm => "would_confirm",
            Self::WouldRestore => "would_restore",
            Self::AlreadyConfirmed => "already_confirmed",
            Self::AlreadyRejected => "already_rejected",
            Self::HoldRestored => "hold_restored",
            Self::HoldMissing => "hold_missing",
            Self::SaleEnded => "sale_ended",
            Self::Undecodable => "undecodable",
            Self::ForeignEnvironment => "foreign_environment",
        }
    }
}

/// Judges a letter. What the ledger has decided comes first, then what Redis says of its stock.
pub fn classify(contents: &LetterContents, evidence: &LetterEvidence<'_>) -> LetterClass {
    let reservation_id = match contents {
        LetterContents::Unreadable => return LetterClass::Undecodable,
        LetterContents::Foreign(_) => return LetterClass::ForeignEnvironment,
        LetterContents::Reservation(reservation) => reservation.reservation_id,
        LetterContents::Compensation { reservation_id, .. } => *reservation_id,
    };
    let hold = evidence.hold.filter(|(of, _)| *of == reservation_id).map(|(_, standing)| standing);
    if let LetterContents::Compensation { .. } = contents {
        return match (evidence.order, hold) {
            (Some(order), _) if has_sold(order, reservation_id) => LetterClass::AlreadyConfirmed,
            (_, Some(HoldStanding::Held)) => LetterClass::WouldRestore,
            (_, Some(HoldStanding::Restored(_))) => LetterClass::HoldRestored,
            _ => LetterClass::HoldMissing,
        };
    }
    match evidence.order.map(|order| &order.state) {
        Some(OrderState::Confirmed) => return LetterClass::AlreadyConfirmed,
        Some(OrderState::Rejected(_)) => return LetterClass::AlreadyRejected,
        Some(OrderState::Expired(_)) => return LetterClass::HoldRestored,
        None => {}
    }
    let over = evidence.window.is_some_and(|window| evidence.now >= window.closes_at());
    match hold {
        Some(HoldStanding::Restored(_)) => LetterClass::HoldRestored,
        _ if over => LetterClass::SaleEnded,
        None => LetterClass::HoldMissing,
        Some(HoldStanding::Held | HoldStanding::Confirmed) => match evidence.decision {
            Some(Decision::Ordered(order)) if order.state == OrderState::Confirmed => {
                LetterClass::WouldConfirm
            }
            _ => LetterClass::WouldRestore,
        },
    }
}

/// What a replay of the letter would do.
pub fn foresee(contents: &LetterContents, evidence: &LetterEvidence<'_>) -> ReplayEffect {
    match contents {
        LetterContents::Unreadable | LetterContents::Foreign(_) => ReplayEffect::NotSent,
        LetterContents::Compensation { reservation_id, .. } => match evidence.order {
            Some(order) if has_sold(order, *reservation_id) => ReplayEffect::DiesAgain,
            // The compensator cannot expire a request of an item that the ledger does not know.
            None if evidence.window.is_none() => ReplayEffect::DiesAgain,
            _ => ReplayEffect::Restores,
        },
        LetterContents::Reservation(_) => match (evidence.decision, evidence.order) {
            (Some(Decision::Ordered(order)), None) => ReplayEffect::Decides(order.state.clone()),
            (Some(Decision::Ordered(order)), Some(_)) => ReplayEffect::Repeats(order.state.clone()),
            (Some(Decision::Surplus(_)), _) => ReplayEffect::Surplus,
            (Some(Decision::Mismatch(_) | Decision::UnknownItem) | None, _) => {
                ReplayEffect::DiesAgain
            }
        },
    }
}

fn has_sold(order: &Order, reservation_id: ReservationId) -> bool {
    order.state == OrderState::Confirmed && order.reservation_id == reservation_id
}

impl fmt::Display for LetterClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LetterClass {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let kind = "a letter's class";
        let rule = "would_confirm, would_restore, already_confirmed, already_rejected, \
                    hold_restored, hold_missing, sale_ended, undecodable or foreign_environment";
        let found = Self::ALL.into_iter().find(|class| class.as_str() == text);
        found.ok_or(InvalidText { kind, rule })
    }
}

impl fmt::Display for ReplayEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decides(state) | Self::Repeats(state) => match state {
                OrderState::Confirmed => f.write_str("confirmed"),
                OrderState::Rejected(reason) => write!(f, "rejected:{reason}"),
                OrderState::Expired(reason) => write!(f, "expired:{reason}"),
            },
            Self::Surplus => f.write_str("surplus"),
            Self::Restores => f.write_str("restored"),
            Self::DiesAgain => f.write_str("dies_again"),
            Self::NotSent => f.write_str("not_sent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::{Quantity, Reason, Verdict};

    const OPENS: UnixMillis = UnixMillis(1_000);

    fn reservation() -> Reservation {
        let (buyer, item) = ("ann".parse().expect("a buyer"), "shoe".parse().expect("an item"));
        Reservation {
            request_id: RequestId::derive(&buyer, &item, &"1".parse().expect("a key")),
            reservation_id: ReservationId::mint(),
            item,
            epoch: 1,
            buyer,
            quantity: Quantity::new(1).expect("one"),
            reserved_at: OPENS,
        }
    }

    fn window() -> Window {
        Window::new(OPENS, OPENS.plus(Duration::from_secs(1))).expect("a window")
    }

    /// The class and what a replay ends as.
    fn judged(
        reservation: &Reservation,
        order: Option<OrderState>,
        hold: Option<HoldStanding>,
        would: OrderState,
    ) -> (LetterClass, String) {
        let order = order.map(|state| Order::of(reservation, state));
        let decided = order.clone().unwrap_or_else(|| Order::of(reservation, would));
        let decision = Decision::Ordered(decided);
        let evidence = LetterEvidence {
            order: order.as_ref(),
            decision: Some(&decision),
            hold: hold.as_ref().map(|standing| (reservation.reservation_id, standing)),
            window: Some(window()),
            now: OPENS,
        };
        let contents = LetterContents::Reservation(reservation.clone());
        (classify(&contents, &evidence), foresee(&contents, &evidence).to_string())
    }

    #[test]
    fn a_letter_is_judged_by_the_ledger_first_and_then_by_its_hold() {
        use OrderState::{Confirmed, Expired, Rejected};
        let discarded: Reason = "discarded".parse().expect("a reason");
        let rejected = || Rejected(Reason::SOLD_OUT);
        let restored = || Some(HoldStanding::Restored(Verdict::Rejected(Reason::SOLD_OUT)));
        let held = || Some(HoldStanding::Held);
        let letter = reservation();
        let judged = |order, hold, would| judged(&letter, order, hold, would);
        let cases = [
            (judged(None, held(), Confirmed), LetterClass::WouldConfirm, "confirmed"),
            (judged(None, held(), rejected()), LetterClass::WouldRestore, "rejected:sold_out"),
            (judged(None, restored(), Confirmed), LetterClass::HoldRestored, "confirmed"),
            (judged(None, None, Confirmed), LetterClass::HoldMissing, "confirmed"),
            (
                judged(Some(Confirmed), held(), Confirmed),
                LetterClass::AlreadyConfirmed,
                "confirmed",
            ),
            (
                judged(Some(rejected()), restored(), Confirmed),
                LetterClass::AlreadyRejected,
                "rejected:sold_out",
            ),
            (
                judged(Some(Expired(discarded)), restored(), Confirmed),
                LetterClass::HoldRestored,
                "expired:discarded",
            ),
        ];
        for ((class, effect), expected_class, expected_effect) in cases {
            assert_eq!((class, effect.as_str()), (expected_class, expected_effect));
        }
    }

    #[test]
    fn a_sale_that_is_over_says_so_and_still_decides() {
        let letter = reservation();
        let decision = Decision::Ordered(Order::of(&letter, OrderState::Confirmed));
        let evidence = LetterEvidence {
            order: None,
            decision: Some(&decision),
            hold: Some((letter.reservation_id, &HoldStanding::Held)),
            window: Some(window()),
            now: window().closes_at(),
        };
        let contents = LetterContents::Reservation(letter);
        assert_eq!(classify(&contents, &evidence), LetterClass::SaleEnded);
        let effect = foresee(&contents, &evidence);
        assert_eq!(effect, ReplayEffect::Decides(OrderState::Confirmed));
    }

    #[test]
    fn somebody_elses_hold_is_not_the_letters() {
        let letter = reservation();
        let evidence = LetterEvidence {
            order: None,
            decision: None,
            hold: Some((ReservationId::mint(), &HoldStanding::Held)),
            window: Some(window()),
            now: OPENS,
        };
        let contents = LetterContents::Reservation(letter);
        assert_eq!(classify(&contents, &evidence), LetterClass::HoldMissing);
    }

    #[test]
    fn a_compensation_never_gives_back_what_is_sold() {
        let of = reservation();
        let contents = LetterContents::Compensation {
            request_id: of.request_id,
            reservation_id: of.reservation_id,
            item: of.item.clone(),
            buyer: of.buyer.clone(),
        };
        let sold = Order::of(&of, OrderState::Confirmed);
        let elsewhere = Order { reservation_id: ReservationId::mint(), ..sold.clone() };
        let evidence = |order| LetterEvidence {
            order,
            decision: None,
            hold: Some((of.reservation_id, &HoldStanding::Held)),
            window: Some(window()),
            now: OPENS,
        };
        assert_eq!(classify(&contents, &evidence(Some(&sold))), LetterClass::AlreadyConfirmed);
        assert_eq!(foresee(&contents, &evidence(Some(&sold))), ReplayEffect::DiesAgain);
        for order in [Some(&elsewhere), None] {
            assert_eq!(classify(&contents, &evidence(order)), LetterClass::WouldRestore);
            assert_eq!(foresee(&contents, &evidence(order)), ReplayEffect::Restores);
        }
    }

    #[test]
    fn what_cannot_be_read_or_is_foreign_is_not_sent() {
        let evidence =
            LetterEvidence { order: None, decision: None, hold: None, window: None, now: OPENS };
        let foreign = EnvironmentId::from_uuid(uuid::Uuid::nil());
        for (contents, class) in [
            (LetterContents::Unreadable, LetterClass::Undecodable),
            (LetterContents::Foreign(foreign), LetterClass::ForeignEnvironment),
        ] {
            assert_eq!(classify(&contents, &evidence), class);
            assert_eq!(foresee(&contents, &evidence), ReplayEffect::NotSent);
        }
        for class in LetterClass::ALL {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
    }
}
