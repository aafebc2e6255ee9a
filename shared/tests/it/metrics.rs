//! Numbers of a process: their documentation, and their page.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use shared::config::Metrics;
use shared::telemetry::metrics::{self, ItemNumbers};
use shared::telemetry::{Kind, Metric, Row, expose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[test]
fn every_number_is_documented_with_what_to_alarm_on() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/METRICS.md");
    let docs = fs::read_to_string(docs).expect("docs/METRICS.md");
    let rows: Vec<&str> = docs.lines().filter(|line| line.starts_with("| `lastunit_")).collect();
    assert_eq!(rows.len(), Metric::ALL.len(), "none that does not exist");
    for (metric, found) in Metric::ALL.into_iter().zip(rows) {
        let Row { name, kind, unit, label, help, .. } = metric.row();
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let label = label.map_or("–".to_owned(), |label| format!("`{label}`"));
        let row = format!("| `{name}` | {kind} | {unit} | {label} | {help} | ");
        assert!(found.starts_with(&row), "docs/METRICS.md lacks this row:\n{row}\nit has\n{found}");
        assert!(found.len() > row.len() + 2, "{name}: what to alarm on?");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
    }
}

#[tokio::test]
async fn what_the_reconciler_found_is_on_the_page() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    expose(&Metrics { listen: Some(free) }).await.expect("the port is free");
    let item = "numbered".parse().expect("an item");
    let numbers = ItemNumbers {
        available: 5,
        held: 4,
        moving: 3,
        confirmed_units: 1_000_000_000,
        restored_units: 2,
        drift: -7,
    };
    metrics::item(&item, numbers);
    metrics::finding("ledger_behind");
    metrics::law(7);
    let page = page(free, "/metrics").await;
    assert!(page.contains("\r\ncontent-type: text/plain; version=0.0.4"), "{page}");
    for line in [
        "lastunit_item_available_units{item=\"numbered\"} 5",
        "lastunit_item_held_units{item=\"numbered\"} 4",
        "lastunit_item_moving_units{item=\"numbered\"} 3",
        "lastunit_item_confirmed_units{item=\"numbered\"} 1000000000",
        "lastunit_item_restored_units{item=\"numbered\"} 2",
        "lastunit_item_drift_units{item=\"numbered\"} -7",
        "lastunit_findings_total{kind=\"ledger_behind\"} 1",
        "lastunit_law_drift_units 7",
        // Told before there was any.
        "lastunit_dead_letters_total{reason=\"hopeless\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    for metric in [Metric::LawDrift, Metric::DeadLetters, Metric::ItemDrift] {
        let Row { name, help, .. } = metric.row();
        assert!(page.contains(&format!("# HELP {name} {help}\n")), "{name} explains itself");
    }
    assert!(self::page(free, "/").await.starts_with("HTTP/1.1 404"), "nothing else is there");
}

async fn page(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("an answer");
    page
}
