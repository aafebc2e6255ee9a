//! The scripts take exactly the steps of the domain's transition table.

use shared::domain::{HoldEvent, HoldStanding, HoldState, Reservation};
use shared::stock::{ConfirmReply, RestoreReply};

use super::{Shop, purchase, rejected};

/// A hold that has come to `state`.
async fn hold_in(shop: &Shop, state: HoldState, buyer: &str) -> Reservation {
    let reservation = shop.hold(&purchase(buyer, "1", 1)).await;
    match state {
        HoldState::Held => {}
        HoldState::Confirmed => {
            assert_eq!(shop.confirm(&reservation).await, ConfirmReply::Done);
        }
        HoldState::Restored => {
            assert_eq!(shop.restore(&reservation, rejected()).await, RestoreReply::Done);
        }
    }
    reservation
}

/// What a script says of a step.
#[derive(Debug, PartialEq)]
enum Said {
    Done,
    Already,
    Conflict(HoldState),
}

async fn step(shop: &Shop, reservation: &Reservation, event: HoldEvent) -> Said {
    match event {
        HoldEvent::Confirm => match shop.confirm(reservation).await {
            ConfirmReply::Done => Said::Done,
            ConfirmReply::Already => Said::Already,
            ConfirmReply::Conflict { state, .. } => Said::Conflict(state),
            ConfirmReply::Unseen => panic!("it was there"),
        },
        HoldEvent::Restore => match shop.restore(reservation, rejected()).await {
            RestoreReply::Done => Said::Done,
            RestoreReply::Already => Said::Already,
            RestoreReply::Conflict { state, .. } => Said::Conflict(state),
            RestoreReply::Unseen => panic!("it was there"),
        },
    }
}

#[tokio::test]
async fn every_event_in_every_state_leads_where_the_table_says() {
    let shop = Shop::selling(100, None).await;
    for state in HoldState::ALL {
        for event in [HoldEvent::Confirm, HoldEvent::Restore] {
            let reservation = hold_in(&shop, state, &format!("{state}-{event:?}")).await;
            let said = step(&shop, &reservation, event).await;
            let (expected, next) = match state.next(event) {
                Ok(next) if next == state => (Said::Already, next),
                Ok(next) => (Said::Done, next),
                Err(refused) => (Said::Conflict(refused.from), state),
            };
            assert_eq!(said, expected, "{event:?} of a hold that is {state}");
            let standing = match next {
                HoldState::Held => HoldStanding::Held,
                HoldState::Confirmed => HoldStanding::Confirmed,
                HoldState::Restored => HoldStanding::Restored(rejected()),
            };
            assert_eq!(shop.standing(reservation.request_id).await, Some(standing));
        }
    }
}
