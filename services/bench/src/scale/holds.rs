//! Holds in Redis that nobody settles, such as those of a queue that nobody consumes.

use anyhow::ensure;
use shared::config::limits::RESERVE_BATCH;
use shared::domain::ItemId;

use super::growth::Growth;
use super::line::{Line, MEASURES, PLENTY, end};
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;
use crate::stages::taking::{requests, take};

/// Requests that are made and sent in one go, so that a million need no memory here.
const PAGE: u64 = 50_000;

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "holds",
        "More holds in Redis",
        "The whole line, but for the reconciler, with one hot item of which so many units are held \
         already and stay so.",
    );
    let growth = Growth {
        of: "holds",
        sizes: plan.size(vec![0, 10_000, 100_000, 1_000_000], vec![0, 2_000]),
        measures: MEASURES,
    };
    rig.flush_redis().await?;
    let mut lines = Vec::new();
    for size in &growth.sizes {
        plan.tell(format!("taking {size} holds"));
        let deployment = Deployment::new(plan, rig, 4).await?;
        let item: ItemId = "hot-item".parse()?;
        let layout = deployment.sell(&item, PLENTY, Some(1)).await?;
        for first in (0..*size).step_by(PAGE as usize) {
            let page = PAGE.min(size - first);
            let requests = requests(&item, &format!("h{}", first / PAGE), page)?;
            let batches = (RESERVE_BATCH, 2);
            let taken = take(&deployment.stock, &item, layout, &requests, batches).await?;
            ensure!(taken.held.len() as u64 == page, "not everybody got a hold");
        }
        // It would publish these holds again, which is another load.
        lines.push(Line { deployment, items: vec![(item, layout)], has_reconciler: false });
    }
    let run = async |at: usize, tag: &str| lines[at].burst(plan, tag).await;
    growth.measure(plan, &mut section, run).await?;
    end(lines).await?;
    Ok(section)
}
