//! What a hold and a settled order take of Redis's memory.

use anyhow::ensure;
use shared::config::limits::{RESERVE_BATCH, SETTLE_BATCH};
use shared::domain::ItemId;

use crate::deployment::Deployment;
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::rounds::order;
use crate::section::Section;
use crate::stages::taking::{confirm, requests, take};

const MOST_PER_HOLD: Goal = Goal::AtMost(400.0);
const MOST_PER_ORDER: Goal = Goal::AtMost(250.0);

/// A limit per buyer, or none.
const LIMITS: [Option<u64>; 2] = [None, Some(1)];

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let count = plan.size(200_000, 2_000);
    let mut section = Section::new(
        "memory",
        "Memory in Redis",
        "Bytes of Redis's memory for each hold, and for each order once it is settled, of buyers who \
         are all different.",
    );
    for round in 0..plan.rounds {
        plan.tell(format!("memory, round {} of {}", round + 1, plan.rounds));
        for at in order(round, LIMITS.len()) {
            let [hold, settled] = names(LIMITS[at]);
            let [per_hold, per_order] = run(plan, rig, LIMITS[at], count).await?;
            section.record(&hold, "B", per_hold);
            section.record(&settled, "B", per_order);
        }
    }
    for limit in LIMITS {
        let [hold, settled] = names(limit);
        section.expect(&hold, MOST_PER_HOLD);
        section.expect(&settled, MOST_PER_ORDER);
    }
    section.note(format!(
        "`used_memory` before and after {count} holds of one item, without what Redis keeps for its \
         connections and its append-only file; keys are {} bytes long.",
        "t-0123456789ab:{memory#0}:hold:".len() + 36
    ));
    Ok(section)
}

fn names(limit: Option<u64>) -> [String; 2] {
    let with = if limit.is_some() { "with a limit per buyer" } else { "without a limit" };
    [format!("hold, {with}"), format!("settled order, {with}")]
}

async fn run(plan: &Plan, rig: &Rig, limit: Option<u64>, count: u64) -> anyhow::Result<[f64; 2]> {
    // Tables that have grown keep their size: every run begins with an empty Redis.
    rig.flush_redis().await?;
    let deployment = Deployment::new(plan, rig, 1).await?;
    let item: ItemId = "memory".parse()?;
    let layout = deployment.sell(&item, count, limit).await?;
    // Makes Redis know both scripts.
    let requests = requests(&item, "m", count)?;
    let (first, rest) = requests.split_at(1);
    let at_once = (RESERVE_BATCH, 2);
    let warm = take(&deployment.stock, &item, layout, first, at_once).await?;
    confirm(&deployment.stock, &item, &warm.held, SETTLE_BATCH).await?;

    let before = used_memory(&deployment).await?;
    let taken = take(&deployment.stock, &item, layout, rest, at_once).await?;
    ensure!(taken.held.len() == rest.len(), "not everybody got a hold");
    let held = used_memory(&deployment).await?;
    confirm(&deployment.stock, &item, &taken.held, SETTLE_BATCH).await?;
    let settled = used_memory(&deployment).await?;
    deployment.end().await?;
    Ok([held, settled].map(|after| (after - before) / rest.len() as f64))
}

/// Bytes, without buffers that come and go.
async fn used_memory(deployment: &Deployment) -> anyhow::Result<f64> {
    let mut redis = deployment.redis.clone();
    let info: String = redis::cmd("INFO").arg("memory").query_async(&mut redis).await?;
    let field = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or(0.0)
    };
    let used = field("used_memory");
    ensure!(used > 0.0, "Redis does not say how much memory it uses");
    Ok(used - field("mem_clients_normal") - field("mem_aof_buffer"))
}
