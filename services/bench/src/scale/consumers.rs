//! More consumers on one hot item.

use shared::domain::ItemId;

use super::growth::Growth;
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;
use crate::stages::backlog;
use crate::stages::deciding::decide;

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "consumers",
        "More consumers",
        "Orders per second that so many consumers confirm and settle from a backlog of one hot item.",
    );
    let growth = Growth {
        of: "consumers",
        sizes: plan.size(vec![1, 2, 4], vec![1, 2]),
        measures: &[("confirmed and settled", "orders/s")],
    };
    let count = plan.size(40_000, 500);
    let run = async |at: usize, _tag: &str| {
        rig.flush_redis().await?;
        let mut deployment = Deployment::new(plan, rig, 4).await?;
        let item: ItemId = "hot-item".parse()?;
        let layout = deployment.sell(&item, count, Some(1)).await?;
        let items = [(item, layout)];
        let placed = backlog::build(&deployment, &items, count).await?;
        let consumers = u32::try_from(growth.sizes[at])?;
        let decided = decide(&mut deployment, &items, placed, consumers).await?;
        deployment.end().await?;
        Ok(vec![decided.per_second()])
    };
    growth.measure(plan, &mut section, run).await?;
    section.note(
        "One item's batches are decided one after the other, under its row lock, so that more \
         consumers gain little on one item; they must not lose anything either.",
    );
    Ok(section)
}
