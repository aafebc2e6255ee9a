//! How close the pipeline comes to what its backends do without it.
//!
//! | file | stage |
//! |---|---|
//! | [`reserving`], [`redis_benchmark`] | taking stock, next to Redis's own benchmark program |
//! | [`memory`] | bytes per hold and per order |

pub mod empty;
mod memory;
mod redis_benchmark;
mod reserving;

use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Measures every stage, round by round.
pub async fn run(plan: &Plan, rig: &Rig) -> anyhow::Result<Vec<Section>> {
    Ok(vec![reserving::measure(plan, rig).await?, memory::measure(plan, rig).await?])
}
