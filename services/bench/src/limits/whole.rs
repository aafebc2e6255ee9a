//! The whole line under load: what it takes, how soon all is final, and how long answers take when it
//! is half busy.

use shared::domain::ItemId;

use crate::deployment::Deployment;
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;
use crate::stages::deciding::{confirmed, until_settled};
use crate::stages::meter::Meter;
use crate::volley::{Pace, Volley};

const CONNECTIONS: usize = 256;
const CONSUMERS: u32 = 2;
const P50: &str = "accepted at half of that rate: p50";
const P99: &str = "accepted at half of that rate: p99";

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "whole",
        "The whole line",
        "One hot item with stock for everybody, ingress, two consumers, compensator and reconciler as \
         processes of their own: purchases on 256 connections as fast as they are answered, then at \
         half of that rate, whether or not earlier ones are answered.",
    );
    let count = plan.size(40_000, 1_000);
    for round in 0..plan.rounds {
        plan.tell(format!("whole line, round {} of {}", round + 1, plan.rounds));
        rig.flush_redis().await?;
        let mut deployment = Deployment::new(plan, rig, 4).await?;
        let item: ItemId = "hot-item".parse()?;
        let layout = deployment.sell(&item, 10 * count, Some(1)).await?;
        deployment.start("ingress").await?;
        for _ in 0..CONSUMERS {
            deployment.start("consumer").await?;
        }
        deployment.start("compensator").await?;
        deployment.start("reconciler").await?;
        deployment.until_known(&item).await?;
        let items = [(item.clone(), layout)];
        let volley = |pace, tag: &str, requests| Volley {
            address: deployment.address(),
            items: vec![item.to_string()],
            connections: CONNECTIONS,
            requests,
            pace,
            tag: tag.to_owned(),
        };
        // Processes that have just started answer their first requests slower.
        let warming = volley(Pace::Closed, "w", count / 10).fire().await?.all(202)?.count(202);
        until_settled(&deployment, &items, warming, 0).await?;

        let meter = Meter::begin(rig, &deployment);
        let fired = volley(Pace::Closed, "f", count).fire().await?.all(202)?;
        let in_time = confirmed(&deployment).await? - warming;
        until_settled(&deployment, &items, warming + count, 0).await?;
        let final_after = fired.begun.elapsed();
        let rate = fired.per_second(202);
        section.record("accepted", "purchases/s", rate);
        section.record(
            "confirmed and settled",
            "orders/s",
            count as f64 / final_after.as_secs_f64(),
        );
        section.record(
            "confirmed while accepting",
            "% of accepted",
            100.0 * in_time as f64 / count as f64,
        );
        let behind = final_after.saturating_sub(fired.took);
        section.record("time to converge after the last answer", "ms", behind.as_secs_f64() * 1e3);
        meter.record(&mut section, "purchases", count);

        let seconds = plan.size(4.0, 0.5);
        let requests = (rate / 2.0 * seconds) as u64;
        let paced = volley(Pace::PerSecond(rate / 2.0), "h", requests).fire().await?.all(202)?;
        for (name, quantile) in [(P50, 0.5), (P99, 0.99)] {
            let microseconds = paced.accepted.value_at_quantile(quantile);
            section.record(name, "latency ms", microseconds as f64 / 1e3);
        }
        deployment.end().await?;
    }
    section.compare("p99 ÷ p50 at half of the rate", P99, P50, Some(Goal::AtMost(5.0)));
    section.note(
        "The generator takes its share of the processors from the line. Latency counts from when a \
         purchase was due if every connection was busy then.",
    );
    Ok(section)
}
