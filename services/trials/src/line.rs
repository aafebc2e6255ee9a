//! A whole line in one process: a world of its own, the services that run in it, and its books.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, SystemTime};

use load::client::Client;
use reconciler::{Mode, Reconciled};
use shared::config::{Config, RedisMode};
use shared::devstack::{Endpoints, RedisCluster, World};
use shared::domain::{Books, ItemId, Sale, UnixMillis, Window, broken_laws};
use shared::ledger::Ledger;
use shared::shutdown::Shutdown;
use shared::stock::{ItemSnapshot, Stock};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::reconciling::Clerk;
use crate::until::{PATIENCE, until};

/// How long a service that is told to stop may go on with what it has begun.
const GRACE: Duration = Duration::from_secs(10);

/// How soon a service ends once it has given up.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// A service of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Ingress,
    Consumer,
    Compensator,
    Reconciler,
}

impl Service {
    /// Runs it until it is told to stop.
    pub async fn run(self, config: &Config, shutdown: Shutdown) -> Result<(), String> {
        let told = |error: &dyn std::error::Error| error.to_string();
        match self {
            Self::Ingress => ingress::run(config, shutdown).await.map_err(|e| told(&e)),
            Self::Consumer => consumer::run(config, shutdown).await.map_err(|e| told(&e)),
            Self::Compensator => compensator::run(config, shutdown).await.map_err(|e| told(&e)),
            Self::Reconciler => reconciler::run(config, shutdown).await.map_err(|e| told(&e)),
        }
    }

    /// What it is called on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Consumer => "consumer",
            Self::Compensator => "compensator",
            Self::Reconciler => "reconciler",
        }
    }
}

/// A world and what runs in it. What is not stopped ends with the test's runtime, as by a crash.
pub struct Line {
    pub config: Config,
    pub ledger: Ledger,
    pub stock: Stock,
    running: Vec<Running>,
}

struct Running {
    service: Service,
    shutdown: Shutdown,
    run: JoinHandle<Result<(), String>>,
}

impl Line {
    /// A world on the shared stack; nothing runs in it yet.
    pub async fn new() -> Self {
        Self::of(World::new().await.config)
    }

    /// A world on backends of the test's own.
    pub async fn on(endpoints: &Endpoints) -> Self {
        Self::of(World::on(endpoints).await.config)
    }

    /// What these settings lead to, such as those of another deployment.
    pub fn of(config: Config) -> Self {
        let ledger = Ledger::connect(&config.ledger).expect("a ledger");
        let stock = Stock::connect(&config.redis, &config.namespace).expect("a stock");
        Self { config, ledger, stock, running: Vec::new() }
    }

    /// A line that sells this item, with one of each service.
    pub async fn selling(sale: &Sale) -> (Self, SocketAddr) {
        let mut line = Self::new().await;
        line.sell(sale).await;
        let address = line.ingress().await;
        line.start(Service::Consumer);
        line.start(Service::Compensator);
        (line, address)
    }

    /// Puts an item into the ledger and warms it up.
    pub async fn sell(&self, sale: &Sale) {
        self.put(sale).await;
        self.warm(&sale.item).await;
    }

    pub async fn put(&self, sale: &Sale) {
        self.ledger.put_item(sale, None).await.expect("the sale in the ledger");
    }

    pub async fn warm(&self, item: &ItemId) {
        // The connection to Redis may be just about to be made.
        until("the item is warm", async || {
            reconciler::bind_first(&self.config, &self.ledger, &self.stock).await.ok()?;
            reconciler::warm(&self.ledger, &self.stock, item).await.ok()
        })
        .await;
    }

    /// Starts an ingress and waits until it can sell.
    pub async fn ingress(&mut self) -> SocketAddr {
        let config = self.config.clone();
        self.ingress_with(config).await
    }

    /// The same with settings of its own, such as a proxy's address.
    pub async fn ingress_with(&mut self, config: Config) -> SocketAddr {
        let address = self.start_ingress(config);
        until_ready(address).await;
        address
    }

    /// Starts an ingress; its backends may be away.
    pub fn start_ingress(&mut self, mut config: Config) -> SocketAddr {
        config.http.listen = free_address();
        self.start_with(Service::Ingress, config.clone());
        config.http.listen
    }

    pub fn start(&mut self, service: Service) {
        self.start_with(service, self.config.clone());
    }

    pub fn start_with(&mut self, service: Service, config: Config) {
        let shutdown = Shutdown::default();
        let theirs = shutdown.clone();
        let run = tokio::spawn(async move { service.run(&config, theirs).await });
        self.running.push(Running { service, shutdown, run });
    }

    /// Stops every service of a kind, as SIGTERM does, and checks that each ended well.
    pub async fn stop(&mut self, service: Service) {
        self.stop_within(GRACE, service).await;
    }

    /// The same with a grace of the test's own, after which a service gives up what it has begun.
    pub async fn stop_within(&mut self, grace: Duration, service: Service) {
        let of_that_kind = |running: &mut Running| running.service == service;
        let stopping: Vec<_> = self.running.extract_if(.., of_that_kind).collect();
        assert!(!stopping.is_empty(), "no {service:?} runs");
        end(stopping, grace).await;
    }

    /// Stops whatever runs, all at once.
    pub async fn stop_everything(&mut self) {
        end(self.running.drain(..).collect(), GRACE).await;
    }

    /// The end of a test.
    pub async fn stop_all(mut self) {
        self.stop_everything().await;
    }

    /// Goes on with another Redis. Services that run already stay with theirs.
    pub fn move_to_redis(&mut self, url: &str) {
        self.config.redis.url = url.parse().expect("a URL");
        let moved = Stock::connect(&self.config.redis, &self.config.namespace);
        self.stock = moved.expect("a stock");
    }

    /// Goes on with a cluster. Services that run already stay with their Redis.
    pub fn move_to_cluster(&mut self, cluster: &RedisCluster) {
        self.config.redis.mode = RedisMode::Cluster;
        self.move_to_redis(&cluster.urls());
    }

    /// Nobody has seen the store for long: a reconciler may bind another.
    pub async fn forget_store(&self) {
        let long_ago = "UPDATE environment SET store_seen_at = store_seen_at - interval '1 hour'";
        self.ledger.meddle(long_ago).await.expect("forgotten");
    }

    /// Makes holds overdue soon. Services and windows that were opened before stay as they are.
    pub fn hurry(&mut self, first_look: Duration) {
        let first_look = u32::try_from(first_look.as_millis()).expect("a short time");
        self.config.redis.first_look_ms = first_look;
        let hurried = Stock::connect(&self.config.redis, &self.config.namespace);
        self.stock = hurried.expect("a stock");
    }

    /// Waits until a service ends by itself, and says why.
    pub async fn until_ended(&mut self, service: Service) -> Result<(), String> {
        let of_that_kind = |running: &mut Running| running.service == service;
        let ending: Vec<_> = self.running.extract_if(.., of_that_kind).collect();
        let [Running { run, .. }] = ending.try_into().ok().expect("one service of that kind");
        timeout(PATIENCE, run).await.expect("it ends").expect("no panic")
    }

    /// Goes on with another broker. Services that run already stay with theirs.
    pub fn move_to_rabbitmq(&mut self, url: &str) {
        self.config.rabbitmq.url = url.parse().expect("a URL");
    }

    /// The state of an item in Redis.
    pub async fn snapshot(&self, item: &ItemId) -> ItemSnapshot {
        let seen = async || self.stock.snapshot_item(item).await.ok()?;
        until("the item is seen in Redis", seen).await
    }

    /// What Redis still sells.
    pub async fn available(&self, item: &ItemId) -> u64 {
        self.snapshot(item).await.available
    }

    /// What the ledger and Redis say.
    pub async fn books(&self, item: &ItemId) -> Books {
        let redis = self.snapshot(item).await;
        let orders = self.ledger.count_orders(item).await.expect("the orders");
        let row = self.ledger.find_item(item).await.expect("the ledger").expect("the item");
        Books {
            total: row.sale.total,
            confirmed_units: orders.confirmed_units,
            ledger_available: row.available,
            redis_available: Some(redis.available),
            held: redis.held,
            most_by_one_buyer: orders.most_by_one_buyer,
            limit_per_buyer: row.sale.limit_per_buyer,
        }
    }

    /// Waits until no hold waits for its settlement.
    pub async fn until_settled(&self, item: &ItemId) {
        until("no hold is left unsettled", async || {
            (self.snapshot(item).await.held == 0).then_some(())
        })
        .await;
    }

    /// Compares an item with the ledger, and corrects what differs, as `lastunit reconcile` does.
    pub async fn reconcile(&self, item: &ItemId) -> Reconciled {
        let clerk = self.clerk().await;
        until("the item is compared", async || clerk.reconcile(item, Mode::Apply).await.ok()).await
    }

    /// Somebody who compares items with the ledger.
    pub async fn clerk(&self) -> Clerk {
        Clerk::of(&self.config).await
    }

    /// Waits until the law holds by itself, without anybody's order to compare.
    pub async fn until_lawful(&self, item: &ItemId) -> Books {
        until("Redis and the ledger agree by themselves", async || {
            let books = self.books(item).await;
            (books.held == 0 && broken_laws(&books).is_empty()).then_some(books)
        })
        .await
    }

    /// Waits until nothing is held, and checks the law.
    pub async fn assert_law(&self, item: &ItemId) -> Books {
        self.until_settled(item).await;
        let books = self.books(item).await;
        assert_eq!(broken_laws(&books), [], "{books:?}");
        books
    }
}

async fn end(stopping: Vec<Running>, grace: Duration) {
    for running in &stopping {
        running.shutdown.begin(grace);
    }
    for Running { service, run, .. } in stopping {
        let ended = timeout(grace + ENDED_WITHIN, run).await;
        let ended = ended.unwrap_or_else(|_| panic!("{service:?} does not stop"));
        assert_eq!(ended.expect("no panic in a service"), Ok(()), "{service:?}");
    }
}

/// Waits until an ingress says that it can sell.
pub async fn until_ready(address: SocketAddr) {
    let mut client = Client::new(address);
    until("ingress is ready", async || {
        client.get("/readyz").await.ok().filter(|answer| answer.status.is_success())
    })
    .await;
}

/// A sale without a limit that has been open for an hour and goes on for another.
pub fn sale(item: &str, total: u64) -> Sale {
    let now = now();
    let hour = Duration::from_secs(3_600);
    let window = window(now - hour, now + hour);
    Sale::new(item.parse().expect("an item"), total, None, window).expect("a sale")
}

/// A sale with a limit.
pub fn limited(item: &str, total: u64, limit_per_buyer: u64) -> Sale {
    Sale { limit_per_buyer: Some(limit_per_buyer), ..sale(item, total) }
}

pub fn window(opens: SystemTime, closes: SystemTime) -> Window {
    Window::new(UnixMillis::from(opens), UnixMillis::from(closes)).expect("a window")
}

pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Below the ports that the system gives to connections and below those of private backends, so
/// that nobody takes it before the service does. Each test binary begins somewhere else.
pub fn free_address() -> SocketAddr {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 9_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let begin = u16::try_from(std::process::id() % u32::from(COUNT)).expect("less than a u16");
    loop {
        let step = TAKEN.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (begin + step) % COUNT;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
