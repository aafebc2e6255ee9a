//! How close the pipeline comes to what its backends do without it.
//!
//! | file | stage |
//! |---|---|
//! | [`reserving`], [`redis_benchmark`] | taking stock, next to Redis's own benchmark program |
//! | [`memory`] | bytes per hold and per order |
//! | [`http`], [`empty`] | refusals over HTTP, next to a handler that does nothing |
//! | [`accepting`] | accepted purchases, next to bare publishing |
//! | [`consuming`] | confirmed orders, next to bare inserts |
//! | [`whole`] | the whole line, and how long answers take when it is half busy |

mod accepting;
mod consuming;
pub mod empty;
mod http;
mod memory;
mod redis_benchmark;
mod reserving;
mod whole;

use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Measures every stage, round by round.
pub async fn run(plan: &Plan, rig: &Rig) -> anyhow::Result<Vec<Section>> {
    let mut sections = Vec::new();
    if plan.wants("redis") {
        sections.push(reserving::measure(plan, rig).await?);
    }
    if plan.wants("memory") {
        sections.push(memory::measure(plan, rig).await?);
    }
    if plan.wants("http") {
        sections.push(http::measure(plan, rig).await?);
    }
    if plan.wants("accepting") {
        sections.push(accepting::measure(plan, rig).await?);
    }
    if plan.wants("consuming") {
        sections.push(consuming::measure(plan, rig).await?);
    }
    if plan.wants("whole") {
        sections.push(whole::measure(plan, rig).await?);
    }
    Ok(sections)
}
