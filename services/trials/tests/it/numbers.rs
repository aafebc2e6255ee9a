//! What processes tell about themselves adds up.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use load::client::Client;
use shared::config::Config;
use shared::devstack::Companion;
use trials::buyer::{Buyer, at_once};
use trials::line::{Line, Service, free_address, sale};
use trials::messages::reservation;
use trials::settings::tell_settings;
use trials::stack::Scratch;
use trials::until::until;

/// A service as a process, and where it shows its numbers.
pub(crate) struct Told {
    _process: Companion,
    pub(crate) address: SocketAddr,
}

impl Told {
    pub(crate) fn start(service: Service, dir: &Path, config: &Config) -> Self {
        let address = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trial"));
        tell_settings(&mut command, config);
        // Ingress shows them beside what it sells.
        let listen = match service {
            Service::Ingress => "LASTUNIT_HTTP_LISTEN",
            _ => "LASTUNIT_METRICS_LISTEN",
        };
        command.args(["service", service.name()]).current_dir(dir).env(listen, address.to_string());
        let dir = dir.join(service.name());
        let process = Companion::start(service.name(), &dir, command).expect("a process");
        Self { _process: process, address }
    }

    /// Everything that it says, by name and labels.
    pub(crate) async fn numbers(&self) -> Option<HashMap<String, f64>> {
        let page = Client::new(self.address).get("/metrics").await.ok()?;
        assert_eq!(page.status, 200);
        let page = String::from_utf8(page.body.to_vec()).expect("text");
        assert!(!page.contains("buyer-"), "buyers stay private: {page}");
        let lines = page.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let number = |line: &str| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        };
        Some(lines.map(number).collect())
    }
}

/// The sum over all processes; one that has nothing to say says nothing.
async fn sum(processes: &[Told], name: &str) -> Option<f64> {
    let mut sum = 0.0;
    for process in processes {
        sum += process.numbers().await?.get(name).copied().unwrap_or(0.0);
    }
    Some(sum)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reserved_units_are_confirmed_or_restored_once_everything_is_settled() {
    let sale = sale("shoe", 10);
    let line = Line::new().await;
    line.sell(&sale).await;
    // Sold past Redis: of ten units that Redis sells, the ledger then rejects two.
    let past = reservation(&sale.item, "zoe", "key-1", 2);
    line.ledger.commit(&[past]).await.expect("decided");
    let scratch = Scratch::create();
    let services = [Service::Ingress, Service::Consumer, Service::Compensator, Service::Reconciler];
    let processes = services.map(|service| Told::start(service, scratch.path(), &line.config));
    let address = processes[0].address;
    until("ingress can sell", async || {
        let ready = Client::new(address).get("/readyz").await.ok()?;
        (ready.status == 200).then_some(())
    })
    .await;
    for process in &processes {
        until("it shows its numbers", async || process.numbers().await).await;
    }

    let answers = at_once((0..12).map(|number| async move {
        let mut buyer = Buyer::new(address, format!("buyer-{number}"));
        let answer = buyer.buy("shoe", "key-1", 1).await;
        let state = match answer.status {
            202 => buyer.final_state(&answer).await,
            _ => answer.text("code").to_owned(),
        };
        (number, state)
    }))
    .await;
    let told = |wanted: &str| answers.iter().filter(|(_, state)| state == wanted).count() as f64;
    // A unit that was given back may have been bought by a late one, and was rejected again.
    let (confirmed, rejected) = (told("confirmed"), told("rejected"));
    assert_eq!(confirmed, 8.0, "{answers:?}");
    assert!(rejected >= 2.0, "{answers:?}");
    Buyer::new(address, "ann").buy("shoe", "key-1", 0).await.assert_problem(
        422,
        "invalid_field",
        Some("quantity"),
    );

    let of_shoe = |what: &str| format!("lastunit_{what}_units_total{{item=\"shoe\"}}");
    until("all is settled", async || {
        let settled = sum(&processes, &of_shoe("confirmed")).await?
            + sum(&processes, &of_shoe("restored")).await?;
        (sum(&processes, &of_shoe("reserved")).await? == settled).then_some(())
    })
    .await;
    let answered = |code: &str| format!("lastunit_purchase_answers_total{{code=\"{code}\"}}");
    let decided = |what: &str, decision: &str| {
        format!("lastunit_decided_{what}_total{{decision=\"{decision}\"}}")
    };
    for (name, expected) in [
        (of_shoe("reserved"), confirmed + rejected),
        (of_shoe("confirmed"), confirmed),
        (of_shoe("restored"), rejected),
        (answered("reserved"), confirmed + rejected),
        (answered("sold_out"), told("sold_out")),
        (answered("invalid_field"), 1.0),
        (answered("overloaded"), 0.0),
        (decided("reservations", "confirmed"), confirmed),
        (decided("units", "rejected"), rejected),
        (decided("units", "parked"), 0.0),
    ] {
        assert_eq!(sum(&processes, &name).await, Some(expected), "{name}");
    }
    // Who did it, and nobody else.
    let of = async |process: usize| processes[process].numbers().await.expect("numbers");
    assert_eq!(of(0).await.get(&of_shoe("reserved")), Some(&(confirmed + rejected)));
    assert_eq!(of(1).await.get(&of_shoe("confirmed")), Some(&confirmed));
    assert_eq!(of(2).await.get(&of_shoe("restored")), Some(&rejected));
    assert_eq!(of(3).await.get("lastunit_overdue_steps_total{step=\"restore\"}"), Some(&0.0));
}
