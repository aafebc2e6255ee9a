//! A random walk: reserves, settles and repeats in any order, each compared with a simple model and
//! followed by what must always be true. The seed is fixed, and a failing walk is cut short.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shared::domain::{HoldEvent, HoldStanding, HoldState, RequestId, Reservation};
use shared::stock::{ConfirmReply, ReserveReply, ReserveRequest, RestoreReply};

use super::{KEY_REUSED, LIMIT_REACHED, SOLD_OUT, Shop, again, plan, purchase, rejected, unseen};

const UNITS: u64 = 12;
const LIMIT: u64 = 5;
const BUYERS: u8 = 4;
const KEYS: u8 = 4;

/// One step; the numbers choose a buyer, a key, a quantity.
#[derive(Debug, Clone)]
enum Step {
    /// A batch, each a new attempt under a reservation id of its own.
    Reserve(Vec<(u8, u8, u64)>),
    /// As a caller who lost the reply.
    ReserveAgain(u8, u8),
    /// Under the reservation id that holds the stock, or one never seen.
    Settle(u8, u8, Event),
    /// Under another reservation id.
    SettleForeign(u8, u8, Event),
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Confirm,
    Restore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = prop_oneof![Just(Event::Confirm), Just(Event::Restore)];
    let reserve = prop::collection::vec((0..BUYERS, 0..KEYS, 1..4u64), 1..5);
    let step = prop_oneof![
        4 => reserve.prop_map(Step::Reserve),
        1 => (0..BUYERS, 0..KEYS).prop_map(|(buyer, key)| Step::ReserveAgain(buyer, key)),
        4 => (0..BUYERS, 0..KEYS, event.clone()).prop_map(|(b, k, e)| Step::Settle(b, k, e)),
        1 => (0..BUYERS, 0..KEYS, event).prop_map(|(b, k, e)| Step::SettleForeign(b, k, e)),
    ];
    prop::collection::vec(step, 1..60)
}

/// What one hold should be.
#[derive(Debug, Clone)]
struct Known {
    request: ReserveRequest,
    state: HoldState,
    /// Units that it took, and has not given back.
    took: u64,
}

/// What Redis should hold.
#[derive(Debug, Default)]
struct Model {
    holds: BTreeMap<RequestId, Known>,
}

impl Model {
    fn taken(&self) -> u64 {
        self.holds.values().map(|known| known.took).sum()
    }

    fn taken_by(&self, request: &ReserveRequest) -> u64 {
        let theirs = self.holds.values().filter(|known| known.request.buyer == request.buyer);
        theirs.map(|known| known.took).sum()
    }

    fn reserve(&mut self, request: &ReserveRequest, reply: &ReserveReply) {
        let units = request.quantity.units();
        match self.holds.get(&request.request_id) {
            Some(known) if known.request.quantity != request.quantity => {
                assert_eq!(*reply, KEY_REUSED);
            }
            Some(known) => match reply {
                ReserveReply::Held(reservation) => {
                    assert_eq!(known.state, HoldState::Held);
                    assert_eq!(known.request.reservation_id, request.reservation_id);
                    assert_eq!(reservation.reservation_id, request.reservation_id);
                }
                ReserveReply::Repeat { reservation, standing } => {
                    assert_eq!(reservation.reservation_id, known.request.reservation_id);
                    assert_eq!(*standing, standing_of(known.state));
                    let is_own = known.request.reservation_id == request.reservation_id;
                    assert!(!is_own || known.state != HoldState::Held);
                }
                ReserveReply::Refused(_) => panic!("{known:?} is known: {reply:?}"),
            },
            None if self.taken_by(request) + units > LIMIT => assert_eq!(*reply, LIMIT_REACHED),
            None if self.taken() + units > UNITS => assert_eq!(*reply, SOLD_OUT),
            None => {
                assert!(super::is_held(reply), "{reply:?} to {request:?}");
                let known = Known { request: request.clone(), state: HoldState::Held, took: units };
                self.holds.insert(request.request_id, known);
            }
        }
    }

    /// What the scripts should say of a settle, and what it changes.
    fn settle(&mut self, reservation: &Reservation, event: Event) -> &'static str {
        let Some(known) = self.holds.get_mut(&reservation.request_id) else {
            let (state, event) = match event {
                Event::Confirm => (HoldState::Confirmed, "unseen"),
                Event::Restore => (HoldState::Restored, "unseen"),
            };
            let request = ReserveRequest {
                request_id: reservation.request_id,
                reservation_id: reservation.reservation_id,
                buyer: reservation.buyer.clone(),
                quantity: reservation.quantity,
            };
            self.holds.insert(reservation.request_id, Known { request, state, took: 0 });
            return event;
        };
        let event = match event {
            Event::Confirm => HoldEvent::Confirm,
            Event::Restore => HoldEvent::Restore,
        };
        match known.state.next(event) {
            _ if known.request.reservation_id != reservation.reservation_id => "conflict",
            Err(_) => "conflict",
            Ok(next) if next == known.state => "already",
            Ok(next) => {
                known.state = next;
                if next == HoldState::Restored {
                    known.took = 0;
                }
                "done"
            }
        }
    }

    /// Everything that must be true after every step.
    async fn compare(&self, shop: &Shop) {
        let (available, confirmed, held) = shop.numbers().await;
        let units = |state| {
            let of_state = self.holds.values().filter(move |known| known.state == state);
            of_state.map(|known| known.took).sum::<u64>()
        };
        let (sold, open) = (units(HoldState::Confirmed), units(HoldState::Held));
        assert_eq!(available + open + sold, UNITS, "no unit is lost or made");
        let unseen = self
            .holds
            .values()
            .filter(|known| known.state == HoldState::Confirmed && known.took == 0);
        let unseen: u64 = unseen.map(|known| known.request.quantity.units()).sum();
        assert_eq!(confirmed, sold + unseen, "the ledger has sold those too");
        let unfinished = self.holds.values().filter(|known| known.state == HoldState::Held);
        assert_eq!(held, unfinished.count() as u64);
        for known in self.holds.values() {
            let standing = shop.standing(known.request.request_id).await;
            assert_eq!(standing, Some(standing_of(known.state)));
        }
    }

    /// Buyers' totals show in what each may still take: one unit too many is refused, the rest is
    /// not, as long as there is stock.
    async fn compare_limits(&mut self, shop: &Shop) {
        for buyer in 0..BUYERS {
            let taken = self.taken_by(&attempt(buyer, 0, 1));
            for (key, left) in [("over", LIMIT - taken + 1), ("rest", LIMIT - taken)] {
                if left == 0 {
                    continue;
                }
                let request = purchase(&name(buyer), key, left);
                let reply = shop.reserve_one(&request).await;
                self.reserve(&request, &reply);
            }
        }
    }
}

fn standing_of(state: HoldState) -> HoldStanding {
    match state {
        HoldState::Held => HoldStanding::Held,
        HoldState::Confirmed => HoldStanding::Confirmed,
        HoldState::Restored => HoldStanding::Restored(rejected()),
    }
}

fn name(buyer: u8) -> String {
    format!("buyer-{buyer}")
}

fn attempt(buyer: u8, key: u8, units: u64) -> ReserveRequest {
    purchase(&name(buyer), &key.to_string(), units)
}

async fn settle(shop: &Shop, reservation: &Reservation, event: Event) -> &'static str {
    match event {
        Event::Confirm => match shop.confirm(reservation).await {
            ConfirmReply::Done => "done",
            ConfirmReply::Already => "already",
            ConfirmReply::Conflict { .. } => "conflict",
            ConfirmReply::Unseen => "unseen",
        },
        Event::Restore => match shop.restore(reservation, rejected()).await {
            RestoreReply::Done => "done",
            RestoreReply::Already => "already",
            RestoreReply::Conflict { .. } => "conflict",
            RestoreReply::Unseen => "unseen",
        },
    }
}

async fn walk(shop: &Shop, steps: Vec<Step>) {
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Reserve(batch) => {
                let batch: Vec<_> = batch.iter().map(|(b, k, u)| attempt(*b, *k, *u)).collect();
                let replies = shop.reserve(&batch).await;
                batch.iter().zip(&replies).for_each(|(ask, reply)| model.reserve(ask, reply));
            }
            Step::ReserveAgain(buyer, key) => {
                let fresh = attempt(buyer, key, 1);
                let known = model.holds.get(&fresh.request_id);
                let request = known.map_or(fresh, |known| known.request.clone());
                let reply = shop.reserve_one(&request).await;
                model.reserve(&request, &reply);
            }
            Step::Settle(buyer, key, event) => {
                let fresh = attempt(buyer, key, 1);
                let known = model.holds.get(&fresh.request_id);
                let reservation = unseen(known.map_or(&fresh, |known| &known.request));
                let said = settle(shop, &reservation, event).await;
                assert_eq!(said, model.settle(&reservation, event));
            }
            Step::SettleForeign(buyer, key, event) => {
                let reservation = unseen(&again(&attempt(buyer, key, 1)));
                let said = settle(shop, &reservation, event).await;
                assert_eq!(said, model.settle(&reservation, event));
            }
        }
        model.compare(shop).await;
    }
    model.compare_limits(shop).await;
    model.compare(shop).await;
}

#[test]
fn no_sequence_of_steps_loses_or_makes_a_unit() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _entered = runtime.enter();
    let world = runtime.block_on(Shop::closed());
    let config = Config { cases: 40, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let walked = runner.run(&steps(), |steps| {
        let namespace = format!("{}-{}", world.namespace, short());
        let shop = Shop::at(&world.redis, &namespace.parse().expect("a namespace"));
        runtime.block_on(async {
            shop.open(&plan(1, UNITS, Some(LIMIT))).await;
            walk(&shop, steps).await;
        });
        Ok(())
    });
    walked.unwrap_or_else(|failed| panic!("{failed}"));
}

/// A name for the namespace of one walk.
fn short() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}
