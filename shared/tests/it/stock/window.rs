//! The window is judged by the clock of Redis, and the reply says what that clock read.

use std::time::Duration;

use shared::stock::{Refusal, ReserveReply};

use super::{HOUR, Shop, now, plan, plan_within, purchase, window};
use crate::eventually::eventually;

const NOT_OPEN: ReserveReply = ReserveReply::Refused(Refusal::NotOpen);
const ENDED: ReserveReply = ReserveReply::Refused(Refusal::Ended);

/// Buyers come until one is served.
async fn first_held(shop: &Shop, refused: &ReserveReply) -> u64 {
    let mut buyers = 0..;
    eventually("somebody is served", Duration::from_secs(5), || {
        let name = format!("buyer-{}", buyers.next().expect("more"));
        async move {
            match shop.reserve_one(&purchase(&name, "1", 1)).await {
                ReserveReply::Held(reservation) => Some(reservation.reserved_at.0),
                other => {
                    assert_eq!(&other, refused);
                    None
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn nothing_is_sold_before_the_sale_opens() {
    let shop = Shop::closed().await;
    let opens_at = now().plus(Duration::from_millis(150));
    let plan = plan_within(window(opens_at, now().plus(HOUR)), plan(1, 9, None));
    shop.open(&plan).await;
    let first = first_held(&shop, &NOT_OPEN).await;
    assert!(first >= opens_at.0, "sold at {first}, opens at {opens_at:?}");
    assert!(first < opens_at.0 + 1_000, "sold at {first}, opens at {opens_at:?}");
}

#[tokio::test]
async fn nothing_is_sold_once_the_sale_has_ended() {
    let shop = Shop::closed().await;
    let (opened_at, closes_at) = (now(), now().plus(Duration::from_millis(150)));
    let plan = plan_within(window(opened_at, closes_at), plan(1, 1_000_000, None));
    shop.open(&plan).await;
    let (mut last, mut buyers) = (None, 0..);
    let known = purchase("known", "1", 1);
    let known_reservation = shop.hold(&known).await;
    loop {
        let name = format!("buyer-{}", buyers.next().expect("more"));
        match shop.reserve_one(&purchase(&name, "1", 1)).await {
            ReserveReply::Held(reservation) => last = Some(reservation.reserved_at),
            reply => {
                assert_eq!(reply, ENDED);
                break;
            }
        }
        assert!(now() < closes_at.plus(Duration::from_secs(5)), "it never ends");
    }
    assert!(now() >= closes_at, "not before its time");
    assert!(last.is_none_or(|last| last < closes_at), "{last:?} is not before {closes_at:?}");
    assert_eq!(shop.hold(&known).await, known_reservation, "who has a hold keeps it");
}
