//! Services as processes: they stop in good order, and they wait for what they need.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use load::client::Client;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shared::config::Config;
use shared::devstack::World;

use crate::command::{lastunit, run};

/// A service as a process; killed when the test ends early.
struct Service(Child);

impl Service {
    fn start(command: &mut Command) -> Self {
        Self(command.stderr(Stdio::piped()).spawn().expect("a process"))
    }

    fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a pid"));
        kill(pid, Signal::SIGTERM).expect("a living process");
    }

    /// How it ended, and what it logged.
    fn wait(mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.0.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        (self.0.wait().expect("an end"), log)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

async fn until_status(client: &mut Client, path: &str, status: StatusCode) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = client.get(path).await;
        if answer.as_ref().is_ok_and(|response| response.status == status) {
            return;
        }
        assert!(Instant::now() < until, "{path} is not {status}: {answer:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn put_and_warm(config: &Config, total: &str) {
    for arguments in [&["item", "put", "shoe", "--total", total][..], &["warm", "shoe"]] {
        assert!(run(lastunit(config).args(arguments)).status.success(), "{arguments:?}");
    }
}

#[tokio::test]
async fn sigterm_lets_every_service_finish_and_end_with_0() {
    let World { config } = World::new().await;
    put_and_warm(&config, "1000");
    let address = free_address();
    let listen = address.to_string();
    let services = [
        Service::start(lastunit(&config).args(["ingress", "--listen", &listen])),
        Service::start(lastunit(&config).arg("consumer")),
        Service::start(lastunit(&config).arg("compensator")),
    ];
    let mut client = Client::new(address);
    until_status(&mut client, "/readyz", StatusCode::OK).await;

    // Buyers keep buying while ingress is told to stop.
    let buyers: Vec<_> = (0..100)
        .map(|number| {
            tokio::spawn(async move {
                let mut client = Client::new(address);
                let buyer = format!("buyer-{number}");
                let mut accepted = Vec::new();
                for turn in 0..200 {
                    let key = format!("{turn}");
                    let headers = [
                        ("x-buyer-id", buyer.as_str()),
                        ("idempotency-key", key.as_str()),
                        ("content-type", "application/json"),
                    ];
                    let body = br#"{"quantity":1}"#.to_vec();
                    let path = "/v1/items/shoe/orders";
                    match client.send(Method::POST, path, &headers, body).await {
                        Ok(response) if response.status == StatusCode::ACCEPTED => {
                            accepted.push(
                                response.headers["location"].to_str().expect("a path").to_owned(),
                            );
                        }
                        Ok(_) => {}
                        // Ingress has stopped.
                        Err(_) => break,
                    }
                }
                (buyer, accepted)
            })
        })
        .collect();
    // Half-way through the stock, in the middle of the crowd.
    until_sold(&config, 300).await;
    for service in &services {
        service.terminate();
    }
    let mut accepted = Vec::new();
    for buyer in buyers {
        accepted.push(buyer.await.expect("no panic"));
    }
    for service in services {
        let (status, log) = service.wait();
        assert!(status.success(), "{status}: {log}");
        assert!(log.contains("stopp"), "it says that it stopped: {log}");
    }

    // Whoever was told 202 gets an order, from whoever runs next.
    let address = free_address();
    let listen = address.to_string();
    let next = Service::start(lastunit(&config).args(["all", "--listen", &listen]));
    let mut client = Client::new(address);
    until_status(&mut client, "/readyz", StatusCode::OK).await;
    let mut orders = 0;
    for (buyer, accepted) in accepted {
        for order in accepted {
            until_final(&mut client, &buyer, &order).await;
            orders += 1;
        }
    }
    assert!(orders >= 300, "{orders} were accepted");
    next.terminate();
    let (status, log) = next.wait();
    assert!(status.success(), "{status}: {log}");
}

async fn until_sold(config: &Config, units: u64) {
    let ledger = shared::ledger::Ledger::connect(&config.ledger).expect("a ledger");
    let until = Instant::now() + Duration::from_secs(20);
    let item = "shoe".parse().expect("an item");
    while ledger.count_orders(&item).await.expect("orders").confirmed < units {
        assert!(Instant::now() < until, "the crowd does not buy");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_final(client: &mut Client, buyer: &str, order: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = client.send(Method::GET, order, &[("x-buyer-id", buyer)], Vec::new()).await;
        let answer = answer.expect("an answer");
        let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        if body["status"] == "confirmed" {
            return;
        }
        assert!(Instant::now() < until, "{order} is not confirmed: {body}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn services_wait_for_backends_that_are_absent_and_name_them() {
    let World { mut config } = World::new().await;
    let (redis, rabbitmq, ledger) = (free_address(), free_address(), free_address());
    config.redis.url = config.redis.url.with_address(redis);
    config.rabbitmq.url = config.rabbitmq.url.with_address(rabbitmq);
    config.ledger.url = config.ledger.url.with_address(ledger);
    let address = free_address();
    let listen = address.to_string();
    let service = Service::start(lastunit(&config).args(["all", "--listen", &listen]));
    let mut client = Client::new(address);
    until_status(&mut client, "/readyz", StatusCode::SERVICE_UNAVAILABLE).await;
    until_status(&mut client, "/healthz", StatusCode::OK).await;
    let ready = client.get("/readyz").await.expect("an answer");
    let ready = String::from_utf8_lossy(&ready.body).into_owned();
    for backend in [redis, rabbitmq] {
        assert!(ready.contains(&backend.to_string()), "{ready} names {backend}");
    }
    service.terminate();
    let (status, log) = service.wait();
    assert!(status.success(), "{status}: {log}");
    for backend in [redis, rabbitmq, ledger] {
        assert!(log.contains(&backend.to_string()), "the log names {backend}: {log}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_that_names_it() {
    let World { config } = World::new().await;
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = run(lastunit(&config).args(["ingress", "--listen", &address]));
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains(&address) && log.contains("http.listen"), "{log}");
}

#[tokio::test]
async fn a_service_without_http_shows_its_metrics_where_it_is_told_to() {
    let World { config } = World::new().await;
    let address = free_address();
    let listen = ("LASTUNIT_METRICS_LISTEN", address.to_string());
    for service in ["consumer", "compensator", "reconciler"] {
        let process =
            Service::start(lastunit(&config).arg(service).env(listen.0, listen.1.as_str()));
        let mut client = Client::new(address);
        until_status(&mut client, "/metrics", StatusCode::OK).await;
        let page = client.get("/metrics").await.expect("an answer");
        let page = String::from_utf8_lossy(&page.body).into_owned();
        assert!(page.contains("# TYPE lastunit_dead_letters_total counter"), "{service}: {page}");
        process.terminate();
        let (status, log) = process.wait();
        assert!(status.success(), "{service}: {status}: {log}");
    }
}

#[tokio::test]
async fn an_address_for_metrics_that_is_taken_is_an_error_that_names_it() {
    let World { config } = World::new().await;
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = run(lastunit(&config).arg("consumer").env("LASTUNIT_METRICS_LISTEN", &address));
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains(&address) && log.contains("metrics.listen"), "{log}");
}
