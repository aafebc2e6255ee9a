//! More order queues.

use super::growth::Growth;
use super::items::sell_many;
use super::line::{MEASURES, PLENTY, end};
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Enough that every partition has some.
const ITEMS: u64 = 64;

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "partitions",
        "More partitions",
        "The whole line with 64 items, bought in turn, whose reservations travel through so many order \
         queues.",
    );
    let growth = Growth {
        of: "partitions",
        sizes: plan.size(vec![1, 4, 16], vec![1, 4]),
        measures: MEASURES,
    };
    rig.flush_redis().await?;
    let mut lines = Vec::new();
    for size in &growth.sizes {
        let deployment = Deployment::new(plan, rig, u16::try_from(*size)?).await?;
        lines.push(sell_many(deployment, plan.size(ITEMS, 8), PLENTY / ITEMS).await?);
    }
    let run = async |at: usize, tag: &str| lines[at].burst(plan, tag).await;
    growth.measure(plan, &mut section, run).await?;
    end(lines).await?;
    Ok(section)
}
