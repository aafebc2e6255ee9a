//! One hot item, from more buckets.

use super::growth::Growth;
use super::line::{Line, MEASURES, PLENTY, end};
use shared::domain::BucketCount;

use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "buckets",
        "More buckets",
        "The whole line with one hot item whose stock is in so many buckets.",
    );
    let sizes = plan.size(vec![1, 4, 16, 64], vec![1, 4]);
    let growth = Growth { of: "buckets", sizes, measures: MEASURES };
    rig.flush_redis().await?;
    let mut lines = Vec::new();
    for size in &growth.sizes {
        let deployment = Deployment::new(plan, rig, 4).await?;
        let item = "hot-item".parse()?;
        let layout = deployment
            .sell_from(&item, PLENTY, None, BucketCount::new(u16::try_from(*size)?)?)
            .await?;
        lines.push(Line { deployment, items: vec![(item, layout)], has_reconciler: true });
    }
    let run = async |at: usize, tag: &str| lines[at].burst(plan, tag).await;
    growth.measure(plan, &mut section, run).await?;
    end(lines).await?;
    Ok(section)
}
