//! Many items, bought in turn.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use shared::domain::ItemId;

use super::growth::Growth;
use super::line::{Line, MEASURES, PLENTY, end};
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Items that are warmed up side by side.
const WARMING: usize = 8;

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "items",
        "More items",
        "The whole line with so many items on sale, which buyers buy in turn.",
    );
    let growth = Growth {
        of: "items",
        sizes: plan.size(vec![1, 10, 100, 1_000, 10_000], vec![1, 10]),
        measures: MEASURES,
    };
    rig.flush_redis().await?;
    let mut lines = Vec::new();
    for size in &growth.sizes {
        plan.tell(format!("putting {size} items on sale"));
        let deployment = Deployment::new(plan, rig, 4).await?;
        lines.push(sell_many(deployment, *size, PLENTY / size).await?);
    }
    let run = async |at: usize, tag: &str| lines[at].burst(plan, tag).await;
    growth.measure(plan, &mut section, run).await?;
    end(lines).await?;
    section.note(
        "What gathers into one call of a script, one message and one transaction is what comes for \
         the same item (a script), or the same partition (a message), at the same time: with more items \
         there is less of it.",
    );
    Ok(section)
}

/// A line that sells so many items.
pub(super) async fn sell_many(
    deployment: Deployment,
    items: u64,
    units: u64,
) -> anyhow::Result<Line> {
    let deployment = Arc::new(deployment);
    let selling = (0..items).map(|number| {
        let deployment = Arc::clone(&deployment);
        async move {
            let item: ItemId = format!("item-{number:05}").parse()?;
            let layout = deployment.sell(&item, units, None).await?;
            anyhow::Ok((item, layout))
        }
    });
    let items = stream::iter(selling).buffered(WARMING).try_collect().await?;
    let deployment = Arc::into_inner(deployment).expect("nobody else has it any more");
    Ok(Line { deployment, items, has_reconciler: true })
}
