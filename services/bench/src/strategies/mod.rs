//! Other designs of the same sale, side by side.

use crate::plan::Plan;
use crate::rig::Rig;
use crate::section::Section;

/// Measures every design, round by round.
pub async fn run(_plan: &Plan, _rig: &Rig) -> anyhow::Result<Vec<Section>> {
    Ok(Vec::new())
}
