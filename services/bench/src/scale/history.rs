//! Orders that the ledger has decided before.

use anyhow::Context;
use shared::domain::ItemId;
use sqlx::Executor;

use super::growth::Growth;
use super::line::{Line, MEASURES, PLENTY, end};
use crate::deployment::Deployment;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Whose orders they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    AnotherItem,
    TheSameItem,
}

pub(super) const WHOSE: [Whose; 2] = [Whose::AnotherItem, Whose::TheSameItem];

impl Whose {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AnotherItem => "history",
            Self::TheSameItem => "history_of_item",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::AnotherItem => "another item",
            Self::TheSameItem => "the same item",
        }
    }

    fn item(self) -> &'static str {
        match self {
            Self::AnotherItem => "old-item",
            Self::TheSameItem => HOT,
        }
    }
}

const HOT: &str = "hot-item";

pub(super) async fn measure(plan: &Plan, rig: &Rig, whose: Whose) -> anyhow::Result<Section> {
    let told = whose.told();
    let what = format!(
        "The whole line, but for the reconciler, with one hot item and so many orders of {told} in \
         the ledger, each of another buyer."
    );
    let mut section = Section::new(whose.name(), &format!("More history of {told}"), &what);
    let growth = Growth {
        of: "old orders",
        sizes: plan.size(vec![0, 100_000, 1_000_000, 5_000_000], vec![0, 2_000]),
        measures: MEASURES,
    };
    rig.flush_redis().await?;
    let mut lines = Vec::new();
    for size in &growth.sizes {
        plan.tell(format!("writing {size} old orders of {told}"));
        let deployment = Deployment::new(plan, rig, 4).await?;
        let item: ItemId = HOT.parse()?;
        let layout = deployment.sell(&item, PLENTY, Some(1)).await?;
        write_history(&deployment, whose, *size).await.context("cannot write old orders")?;
        // It would tell Redis of buyers that the ledger has and Redis has not.
        lines.push(Line { deployment, items: vec![(item, layout)], has_reconciler: false });
    }
    let run = async |at: usize, tag: &str| lines[at].burst(plan, tag).await;
    growth.measure(plan, &mut section, run).await?;
    end(lines).await?;
    if whose == Whose::TheSameItem {
        section.note(
            "The old orders are written behind the warm-up's back: Redis does not know of them, and \
             what they add to the item's total is sold already.",
        );
    }
    Ok(section)
}

/// As if they had been sold in an earlier sale that has ended, or in this one.
async fn write_history(deployment: &Deployment, whose: Whose, orders: u64) -> anyhow::Result<()> {
    let orders = i64::try_from(orders)?;
    let mut connection = deployment.database.acquire().await?;
    if whose == Whose::AnotherItem {
        let ended = "INSERT INTO items (item_id, total, available, opens_at, closes_at)
                     VALUES ($1, 0, 0, now() - interval '2 days', now() - interval '1 day')";
        sqlx::query(ended).bind(whose.item()).execute(&mut *connection).await?;
    }
    let total = "UPDATE items SET total = total + $2 WHERE item_id = $1";
    sqlx::query(total).bind(whose.item()).bind(orders).execute(&mut *connection).await?;
    let insert = "INSERT INTO orders (request_id, reservation_id, item_id, buyer_id, quantity, state, epoch,
                                      reserved_at)
                  SELECT gen_random_uuid(), gen_random_uuid(), $1, 'old-' || number, 1, 'confirmed', 1,
                         now() - interval '1 day'
                  FROM generate_series(1, $2) AS number";
    sqlx::query(insert).bind(whose.item()).bind(orders).execute(&mut *connection).await?;
    // What the server would do some time later, in the middle of a measurement.
    connection.execute("VACUUM ANALYZE").await?;
    connection.execute("CHECKPOINT").await?;
    Ok(())
}
