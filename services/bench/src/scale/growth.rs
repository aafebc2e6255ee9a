//! Something grows, and is measured beside its smallest size.

use crate::goal::Goal;
use crate::plan::Plan;
use crate::rounds::order;
use crate::section::Section;

/// Throughput at the largest size, in terms of that at the smallest.
const KEPT: Goal = Goal::AtLeast(0.8);

/// What is measured at each size: a name, and what it counts per second.
pub(super) type Measure = (&'static str, &'static str);

/// What grows.
pub(super) struct Growth {
    /// For example `items`.
    pub(super) of: &'static str,
    /// The smallest comes first, the largest last.
    pub(super) sizes: Vec<u64>,
    pub(super) measures: &'static [Measure],
}

impl Growth {
    /// Runs every size in each round, each beside the smallest. `run` gets the place of a size and
    /// a tag that no other run has, and returns one figure for each measure.
    pub(super) async fn measure(
        &self,
        plan: &Plan,
        section: &mut Section,
        mut run: impl AsyncFnMut(usize, &str) -> anyhow::Result<Vec<f64>>,
    ) -> anyhow::Result<()> {
        let mut runs = 0;
        // A single size has nothing to run beside.
        let pairs = (1..self.sizes.len()).map(|large| vec![0, large]);
        let pairs: Vec<_> = if self.sizes.len() == 1 { vec![vec![0]] } else { pairs.collect() };
        for round in 0..plan.rounds {
            for pair in &pairs {
                for at in order(round, pair.len()).into_iter().map(|at| pair[at]) {
                    let size = self.sizes[at];
                    plan.tell(format!(
                        "{size} {}, round {} of {}",
                        self.of,
                        round + 1,
                        plan.rounds
                    ));
                    let figures = run(at, &format!("{runs:03}")).await?;
                    runs += 1;
                    for (measure, figure) in self.measures.iter().zip(figures) {
                        self.record(section, *measure, (at, pair), figure);
                    }
                }
            }
        }
        self.compare(section);
        Ok(())
    }

    fn record(
        &self,
        section: &mut Section,
        (measure, unit): Measure,
        (at, pair): (usize, &[usize]),
        figure: f64,
    ) {
        let name = match pair {
            [small, large] if at == *small => self.beside(measure, *large),
            _ => self.name(measure, at),
        };
        section.record(&name, unit, figure);
        section.plot(measure, [self.of, unit], self.sizes[at] as f64, figure);
    }

    fn compare(&self, section: &mut Section) {
        for (measure, _) in self.measures {
            for large in 1..self.sizes.len() {
                let is_largest = large + 1 == self.sizes.len();
                let goal = is_largest.then_some(KEPT);
                let (of, sizes) = (self.of, &self.sizes);
                let name = format!("{measure}: {} ÷ {} {of}", sizes[large], sizes[0]);
                let (numerator, denominator) =
                    (self.name(measure, large), self.beside(measure, large));
                section.compare(&name, &numerator, &denominator, goal);
            }
        }
    }

    fn name(&self, measure: &str, at: usize) -> String {
        format!("{measure}, {} {}", self.sizes[at], self.of)
    }

    /// The smallest size as it was right beside a larger one.
    fn beside(&self, measure: &str, large: usize) -> String {
        format!("{measure}, {} {}, beside {}", self.sizes[0], self.of, self.sizes[large])
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::goal::Verdict;

    #[tokio::test]
    async fn every_size_runs_beside_the_smallest_in_alternating_order() {
        let plan = Plan {
            rounds: 2,
            quick: true,
            only: Vec::new(),
            dir: PathBuf::new(),
            program: PathBuf::new(),
            tell: |_| (),
        };
        let growth =
            Growth { of: "items", sizes: vec![1, 10, 100], measures: &[("sold", "orders/s")] };
        let mut section = Section::new("items", "Items", "Items.");
        let mut ran = Vec::new();
        let run = async |at: usize, tag: &str| {
            ran.push((at, tag.to_owned()));
            Ok(vec![[100.0, 90.0, 70.0][at]])
        };
        growth.measure(&plan, &mut section, run).await.expect("measured");
        let places: Vec<usize> = ran.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [0, 1, 0, 2, 1, 0, 2, 0]);
        assert_eq!(section.ratios.len(), 2);
        assert_eq!(section.ratios[0].verdict, None, "only the largest has a goal");
        assert_eq!(section.ratios[1].rounds, [0.7, 0.7]);
        assert_eq!(section.ratios[1].verdict, Some(Verdict::Missed));
        assert_eq!(section.series[0].points[0].rounds.len(), 4, "the smallest ran in each pair");
    }
}
