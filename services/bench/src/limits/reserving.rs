//! Redis: batches of `reserve` through our client, next to single calls of the same script by Redis's
//! own benchmark program.

use anyhow::ensure;
use shared::domain::ItemId;
use shared::stock::Bucket;

use super::redis_benchmark::{SingleReserve, single_reserves};
use crate::cpu::Watch;
use crate::deployment::Deployment;
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::{Rig, Server};
use crate::rounds::order;
use crate::section::Section;
use crate::stages::taking::{requests, take};

/// Calls of one process that are under way at once: some wait at Redis while others are written or read.
const CALLS: usize = 4;

/// Whoever reserves.
#[derive(Debug, Clone, Copy)]
struct Contestant {
    /// Requests in a call; `None` is Redis's own program, one by one.
    batch: Option<usize>,
    wins: bool,
}

const CONTESTANTS: [Contestant; 6] = [
    Contestant { batch: None, wins: true },
    Contestant { batch: Some(64), wins: true },
    Contestant { batch: Some(128), wins: true },
    Contestant { batch: None, wins: false },
    Contestant { batch: Some(64), wins: false },
    Contestant { batch: Some(128), wins: false },
];

impl Contestant {
    fn name(self) -> String {
        let who = if self.wins { "reserve, winners" } else { "sold out: refusals, losers" };
        match self.batch {
            Some(batch) => format!("{who}, batches of {batch}"),
            None => format!("{who}, one by one (redis-benchmark)"),
        }
    }
}

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "redis",
        "Taking stock in Redis",
        "Requests per second of `reserve` through our own client, in batches of 64 and 128, next to \
         redis-benchmark calling the same script by EVALSHA with one request each on 50 connections \
         without pipelining; every request is a new one by a new buyer, and the item has a limit per \
         buyer.",
    );
    let count = plan.size(100_000, 2_000);
    for round in 0..plan.rounds {
        plan.tell(format!("Redis, round {} of {}", round + 1, plan.rounds));
        rig.flush_redis().await?;
        let deployment = Deployment::new(plan, rig, 1).await?;
        for at in order(round, CONTESTANTS.len()) {
            let item: ItemId = format!("item-{at}").parse()?;
            let watch = Watch::begin(rig.pids(Server::Redis));
            let per_second = run(rig, &deployment, &item, CONTESTANTS[at], count).await?;
            section.record(&CONTESTANTS[at].name(), "requests/s", per_second);
            let name = format!("Redis's CPU for 1,000: {}", CONTESTANTS[at].name());
            section.record(&name, "CPU ms", watch.seconds() * 1e3 / (count as f64 / 1e3));
        }
        deployment.end().await?;
    }
    judge(&mut section);
    Ok(section)
}

async fn run(
    rig: &Rig,
    deployment: &Deployment,
    item: &ItemId,
    contestant: Contestant,
    count: u64,
) -> anyhow::Result<f64> {
    let units = if contestant.wins { count } else { 0 };
    let layout = deployment.sell(item, units, Some(1)).await?;
    let Some(batch) = contestant.batch else {
        let single = SingleReserve { item, layout, requests: count };
        let per_second = single_reserves(rig, deployment, single).await?;
        let bucket = Bucket { item: item.clone(), number: 0 };
        let left = deployment.stock.snapshot(&bucket).await?.map(|found| found.available);
        // Numbers are drawn, so that a few requests may have been the same.
        let least = units - units / 100;
        let taken = units - left.unwrap_or(units);
        ensure!(taken >= least, "redis-benchmark took {taken} units instead of {units}");
        return Ok(per_second);
    };
    let requests = requests(item, "r", count)?;
    let taken = take(&deployment.stock, item, layout, &requests, (batch, CALLS)).await?;
    let held = taken.held.len() as u64;
    ensure!(held == units, "{held} units were held instead of {units}");
    Ok(count as f64 / taken.took.as_secs_f64())
}

fn judge(section: &mut Section) {
    let [single_wins, wins_64, wins_128, single_losses, losses_64, losses_128] =
        CONTESTANTS.map(Contestant::name);
    for (batch, ours) in [(64, &wins_64), (128, &wins_128)] {
        let name = format!("winners, batches of {batch} ÷ winners one by one");
        section.compare(&name, ours, &single_wins, Some(Goal::AtLeast(4.0)));
    }
    for (batch, ours) in [(64, &losses_64), (128, &losses_128)] {
        let name = format!("losers, batches of {batch} ÷ winners one by one");
        section.compare(&name, ours, &single_wins, Some(Goal::AtLeast(12.0)));
        let name = format!("losers, batches of {batch} ÷ losers one by one");
        section.compare(&name, ours, &single_losses, None);
    }
    section.note(format!(
        "Our client is one process with one connection and {CALLS} calls under way. A batch is one \
         run of the script: what every run does besides its requests (reading the sale, the clock, \
         and which server this is) is done once for all of them."
    ));
    section.note(
        "Losers find the item sold out: their figures count refusals. The goal for losers is \
         against winners one by one.",
    );
}
