//! Whether throughput falls as things grow.

use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Measures every growth, round by round.
pub async fn run(_plan: &Plan, _rig: &Rig) -> anyhow::Result<Vec<Section>> {
    Ok(Vec::new())
}
