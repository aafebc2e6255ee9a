//! HTTP: refusals of ingress, next to a handler that does nothing.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;

use anyhow::ensure;
use shared::devstack::Companion;
use shared::domain::ItemId;
use tokio::net::TcpStream;

use crate::cpu::Watch;
use crate::deployment::{Deployment, POLL, READY_WITHIN, free_address};
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::rounds::order;
use crate::section::Section;
use crate::stages::meter::Meter;
use crate::volley::{Fired, Pace, Volley};

const CONNECTIONS: usize = 256;
const EMPTY: &str = "empty handler";
const SOLD_OUT: &str = "ingress, sold out: refusals";

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "http",
        "HTTP",
        "Answers per second of ingress to purchases of an item that is sold out, next to a handler \
         that only reads the body and answers 200, both as processes of their own on the same HTTP \
         library, asked by the same generator on 256 keep-alive connections; every request has another \
         buyer and key.",
    );
    let requests = plan.size(200_000, 1_000);
    let empty = Empty::start(plan).await?;
    rig.flush_redis().await?;
    let mut deployment = Deployment::new(plan, rig, 4).await?;
    let item: ItemId = "http-item".parse()?;
    deployment.sell(&item, 0, Some(1)).await?;
    deployment.start("ingress").await?;
    deployment.until_known(&item).await?;
    for round in 0..plan.rounds {
        plan.tell(format!("HTTP, round {} of {}", round + 1, plan.rounds));
        for at in order(round, 2) {
            let volley = |address, side: &str| Volley {
                address,
                items: vec![item.to_string()],
                connections: CONNECTIONS,
                requests,
                pace: Pace::Closed,
                tag: format!("{side}{round:02}"),
            };
            if at == 0 {
                let watch = Watch::begin(vec![empty.companion.pid()]);
                let fired = volley(empty.address, "e").fire().await?.all(200)?;
                section.record(EMPTY, "answers/s", fired.per_second(200));
                let milliseconds = watch.seconds() * 1e3 / (requests as f64 / 1e3);
                section.record("CPU for 1,000 answers: empty handler", "CPU ms", milliseconds);
            } else {
                let meter = Meter::begin(rig, &deployment);
                let fired = sold_out(volley(deployment.address(), "s").fire().await?)?;
                section.record(SOLD_OUT, "answers/s", fired.per_second(409));
                meter.record(&mut section, "refusals", requests);
            }
        }
    }
    deployment.end().await?;
    section.compare("sold out ÷ empty handler", SOLD_OUT, EMPTY, Some(Goal::AtLeast(0.7)));
    section.note(
        "The generator is one thread of the benchmark's own process. On a machine of few cores it \
         takes a large part of them, the same for both sides: what a request costs the server alone is \
         in the CPU figures.",
    );
    Ok(section)
}

fn sold_out(fired: Fired) -> anyhow::Result<Fired> {
    let fired = fired.all(409)?;
    let told = fired.samples.values().all(|sample| sample.contains("sold_out"));
    ensure!(told, "refused for another reason: {:?}", fired.samples);
    Ok(fired)
}

/// The handler that does nothing, running.
struct Empty {
    companion: Companion,
    address: SocketAddr,
}

impl Empty {
    async fn start(plan: &Plan) -> anyhow::Result<Self> {
        let address = free_address()?;
        let home = plan.dir.join("empty");
        std::fs::create_dir_all(&home)?;
        let mut command = Command::new(&plan.program);
        command.args(["bench", "empty", "--listen", &address.to_string()]).current_dir(&home);
        let companion = Companion::start("empty", &home, command)?;
        let until = Instant::now() + READY_WITHIN;
        while TcpStream::connect(address).await.is_err() {
            let late = Instant::now() >= until;
            ensure!(!late, "the empty handler does not answer; see {}", companion.log().display());
            tokio::time::sleep(POLL).await;
        }
        Ok(Self { companion, address })
    }
}
