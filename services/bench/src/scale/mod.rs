//! Whether throughput falls as things grow.
//!
//! | file | what grows |
//! |---|---|
//! | [`items`] | items on sale, bought in turn |
//! | [`buckets`] | buckets of one hot item |
//! | [`consumers`] | consumers at work on one hot item |
//! | [`partitions`] | order queues |
//! | [`holds`] | holds in Redis that nobody settles |
//! | [`history`] | orders in the ledger, of another item and of the same one |
//!
//! [`growth`] has what they share: in each round, every size runs right beside the smallest one, in
//! alternating order.

mod buckets;
mod consumers;
mod growth;
mod history;
mod holds;
mod items;
mod line;
mod partitions;

use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Measures every growth, round by round.
pub async fn run(plan: &Plan, rig: &Rig) -> anyhow::Result<Vec<Section>> {
    let mut sections = Vec::new();
    if plan.wants("items") {
        sections.push(items::measure(plan, rig).await?);
    }
    if plan.wants("buckets") {
        sections.push(buckets::measure(plan, rig).await?);
    }
    if plan.wants("consumers") {
        sections.push(consumers::measure(plan, rig).await?);
    }
    if plan.wants("partitions") {
        sections.push(partitions::measure(plan, rig).await?);
    }
    if plan.wants("holds") {
        sections.push(holds::measure(plan, rig).await?);
    }
    for whose in history::WHOSE {
        if plan.wants(whose.name()) {
            sections.push(history::measure(plan, rig, whose).await?);
        }
    }
    Ok(sections)
}
