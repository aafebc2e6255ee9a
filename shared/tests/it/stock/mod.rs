//! The stock room on a real Redis. Everything is seen through its own verbs.

mod cluster;
mod connection;
mod correct;
mod full;
mod lock;
mod look_up;
mod raw;
mod records;
mod reserve;
mod settle;
mod store;
mod transfer;
mod transitions;
mod walk;
mod warm;
mod window;

use std::time::{Duration, SystemTime};

use shared::config::{self, RedisMode};
use shared::devstack::{RedisRecipe, World};
use shared::domain::{
    BucketCount, BuyerId, HoldStanding, Namespace, Quantity, RequestId, Reservation, ReservationId,
    UnixMillis, Verdict, Window,
};
use shared::stock::{
    Bucket, BucketPlan, ConfirmReply, HoldLookup, Layout, Refusal, ReserveReply, ReserveRequest,
    Reserved, RestoreReply, RestoreRequest, Snapshot, StampReply, Stock, Terms, WarmReply,
};

use crate::scratch::Private;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// One item with one bucket.
struct Shop {
    stock: Stock,
    bucket: Bucket,
    layout: Layout,
    redis: config::Redis,
    namespace: Namespace,
}

impl Shop {
    /// Not warmed up yet.
    async fn closed() -> Self {
        let World { config } = World::new().await;
        Self::at(&config.redis, &config.namespace)
    }

    fn at(redis: &config::Redis, namespace: &Namespace) -> Self {
        let stock = Stock::connect(redis, namespace).expect("a URL");
        let bucket = Bucket { item: "shoe".parse().expect("an item"), number: 0 };
        let layout = Layout { epoch: 1, buckets: BucketCount::ONE };
        Self { stock, bucket, layout, redis: redis.clone(), namespace: namespace.clone() }
    }

    /// A shop on a Redis of the test's own.
    fn on(private: &Private<RedisRecipe>) -> Self {
        let redis = config::Redis {
            url: private.backend().url().parse().expect("a URL"),
            mode: RedisMode::Single,
            first_look_ms: 30_000,
            checks_incarnation: true,
            replicas: 0,
        };
        Self::at(&redis, &"private".parse().expect("a namespace"))
    }

    async fn selling(units: u64, limit: Option<u64>) -> Self {
        let shop = Self::closed().await;
        shop.open(&plan(1, units, limit)).await;
        shop
    }

    /// Warms up without any decided orders.
    async fn open(&self, plan: &BucketPlan) {
        assert_eq!(self.warm(plan).await, WarmReply::Done);
        let built = self.stock.warm_page(&self.bucket, plan.epoch, &[], true).await;
        assert_eq!(built.expect("an answer"), WarmReply::Done);
        let opened = self.stock.open(&self.bucket, plan.epoch).await;
        assert_eq!(opened.expect("an answer"), WarmReply::Done);
    }

    async fn warm(&self, plan: &BucketPlan) -> WarmReply {
        self.stock.warm(&self.bucket, plan, 1).await.expect("an answer")
    }

    async fn reserve(&self, requests: &[ReserveRequest]) -> Vec<ReserveReply> {
        match self.stock.reserve(&self.bucket, self.layout, requests).await.expect("an answer") {
            Reserved::Answered(replies) => replies,
            Reserved::NotReady => panic!("Redis has not been compared"),
            Reserved::Moved(layout) => panic!("the layout is {layout:?}"),
        }
    }

    async fn reserve_one(&self, request: &ReserveRequest) -> ReserveReply {
        let [reply] = self.reserve(std::slice::from_ref(request)).await.try_into().expect("one");
        reply
    }

    /// Reserves what is sure to be there.
    async fn hold(&self, request: &ReserveRequest) -> Reservation {
        match self.reserve_one(request).await {
            ReserveReply::Held(reservation) => reservation,
            other => panic!("not held: {other:?}"),
        }
    }

    async fn confirm(&self, reservation: &Reservation) -> ConfirmReply {
        let replies =
            self.stock.confirm(&self.bucket.item, std::slice::from_ref(reservation)).await;
        let [reply] = replies.expect("an answer").try_into().expect("one");
        reply
    }

    async fn restore(&self, reservation: &Reservation, verdict: Verdict) -> RestoreReply {
        let request = giving_back(reservation, verdict);
        let replies = self.stock.restore(&self.bucket.item, &[request]).await;
        let [reply] = replies.expect("an answer").try_into().expect("one");
        reply
    }

    /// Says that the bucket agrees with the ledger on this server, as the reconciler does.
    async fn stamp(&self) {
        let seen = self.snapshot().await;
        let stamped =
            self.stock.stamp(&self.bucket, seen.fence, seen.epoch, &seen.incarnation).await;
        assert_eq!(stamped.expect("an answer"), StampReply::Stamped);
    }

    /// Loses the sale, but not its holds.
    fn forget_sale(&self) {
        let key = format!("{}:{{shoe#0}}:sale", self.namespace);
        assert_eq!(raw::command(&self.redis, &["DEL", &key]), ":1");
    }

    async fn snapshot(&self) -> Snapshot {
        self.stock.snapshot(&self.bucket).await.expect("an answer").expect("a bucket")
    }

    /// Units available, units confirmed, holds not settled.
    async fn numbers(&self) -> (u64, u64, u64) {
        let snapshot = self.snapshot().await;
        (snapshot.available, snapshot.confirmed_units, snapshot.held)
    }

    async fn find(&self, request_id: RequestId) -> HoldLookup {
        // Whose it is does not matter where there is one bucket.
        let found = self.stock.find_hold(&self.bucket.item, &buyer("ann"), request_id).await;
        found.expect("an answer")
    }

    async fn standing(&self, request_id: RequestId) -> Option<HoldStanding> {
        self.find(request_id).await.hold.map(|hold| hold.standing)
    }
}

fn now() -> UnixMillis {
    SystemTime::now().into()
}

/// The same in another window.
fn plan_within(window: Window, plan: BucketPlan) -> BucketPlan {
    BucketPlan { terms: Terms { window, ..plan.terms }, ..plan }
}

/// A sale that opened an hour ago and closes in an hour.
fn plan(epoch: u64, available: u64, limit_per_buyer: Option<u64>) -> BucketPlan {
    BucketPlan {
        epoch,
        buckets: BucketCount::ONE,
        available,
        confirmed_units: 0,
        terms: Terms {
            version: 1,
            window: window(UnixMillis(now().0 - 3_600_000), now().plus(HOUR)),
            limit_per_buyer,
            pause: None,
        },
    }
}

fn window(opens_at: UnixMillis, closes_at: UnixMillis) -> Window {
    Window::new(opens_at, closes_at).expect("a window")
}

fn buyer(name: &str) -> BuyerId {
    name.parse().expect("a buyer")
}

fn request_id(buyer: &BuyerId, key: &str) -> RequestId {
    let item = "shoe".parse().expect("an item");
    RequestId::derive(buyer, &item, &key.parse().expect("a key"))
}

/// A purchase under a reservation id of its own.
fn purchase(name: &str, key: &str, units: u64) -> ReserveRequest {
    let buyer = buyer(name);
    ReserveRequest {
        request_id: request_id(&buyer, key),
        reservation_id: ReservationId::mint(),
        buyer,
        quantity: Quantity::new(units).expect("units"),
    }
}

/// The same purchase, tried again by somebody who does not know the first reservation id.
fn again(request: &ReserveRequest) -> ReserveRequest {
    ReserveRequest { reservation_id: ReservationId::mint(), ..request.clone() }
}

/// A reservation that this Redis has never seen.
fn unseen(request: &ReserveRequest) -> Reservation {
    Reservation {
        request_id: request.request_id,
        reservation_id: request.reservation_id,
        item: "shoe".parse().expect("an item"),
        epoch: 1,
        buyer: request.buyer.clone(),
        quantity: request.quantity,
        reserved_at: now(),
    }
}

fn giving_back(reservation: &Reservation, verdict: Verdict) -> RestoreRequest {
    RestoreRequest {
        request_id: reservation.request_id,
        reservation_id: reservation.reservation_id,
        buyer: reservation.buyer.clone(),
        quantity: reservation.quantity,
        epoch: reservation.epoch,
        verdict,
    }
}

fn rejected() -> Verdict {
    Verdict::Rejected(shared::domain::Reason::SOLD_OUT)
}

const SOLD_OUT: ReserveReply = ReserveReply::Refused(Refusal::SoldOut);
const LIMIT_REACHED: ReserveReply = ReserveReply::Refused(Refusal::LimitReached);
const KEY_REUSED: ReserveReply = ReserveReply::Refused(Refusal::KeyReused);
const NOT_WARM: ReserveReply = ReserveReply::Refused(Refusal::NotWarm);

fn is_held(reply: &ReserveReply) -> bool {
    matches!(reply, ReserveReply::Held(_))
}
