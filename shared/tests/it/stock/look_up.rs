//! What operators look up: many holds at once, and when the next look comes.

use shared::domain::{HoldStanding, RequestId};
use shared::stock::WatchedHold;

use super::{Shop, buyer, purchase, rejected};

#[tokio::test]
async fn holds_are_found_in_the_order_in_which_they_are_asked_for() {
    let shop = Shop::selling(9, None).await;
    let held = shop.hold(&purchase("ann", "1", 2)).await;
    let restored = shop.hold(&purchase("bob", "1", 1)).await;
    shop.restore(&restored, rejected()).await;
    let nobody = purchase("eve", "1", 1).request_id;
    let requests = [("bob", restored.request_id), ("eve", nobody), ("ann", held.request_id)];
    let requests = requests.map(|(name, request_id)| (buyer(name), request_id));
    let item = &shop.bucket.item;
    let found = shop.stock.find_holds(item, &requests).await.expect("an answer");
    let standing =
        |found: &Option<WatchedHold>| found.as_ref().map(|watched| watched.hold.standing.clone());
    let standings: Vec<_> = found.iter().map(standing).collect();
    let expected = [Some(HoldStanding::Restored(rejected())), None, Some(HoldStanding::Held)];
    assert_eq!(standings, expected);
    let watched = found[2].as_ref().expect("a hold");
    assert_eq!(watched.hold.reservation_id, held.reservation_id);
    assert_eq!((watched.hold.quantity, watched.reserved_at), (held.quantity, held.reserved_at));
    assert_eq!(shop.stock.find_holds(item, &[]).await.expect("an answer"), []);
    for request in [restored.request_id, nobody, held.request_id] {
        let alone = shop.stock.search_hold(item, request).await.expect("an answer");
        assert_eq!(alone.is_some(), request != nobody, "without its buyer");
    }
}

#[tokio::test]
async fn the_next_look_is_known_until_the_hold_is_settled() {
    let shop = Shop::selling(9, None).await;
    let held = shop.hold(&purchase("ann", "1", 2)).await;
    let next = async |request_id: RequestId| {
        shop.stock.next_look(&shop.bucket.item, &held.buyer, request_id).await.expect("an answer")
    };
    assert!(next(held.request_id).await.is_some_and(|due| due > held.reserved_at));
    shop.confirm(&held).await;
    assert_eq!(next(held.request_id).await, None);
}
