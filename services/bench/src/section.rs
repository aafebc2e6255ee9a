//! One thing that was measured: figures round by round, ratios between them, curves.
//!
//! A ratio is taken in each round, between figures of that round: what slows a whole round down,
//! such as a busy machine, then says little about the ratio.

use serde::Serialize;

use crate::goal::{Goal, Verdict};
use crate::spread::Spread;

/// What was measured, in one sentence, and what it came to.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Short and stable, for programs, for example `redis`.
    pub name: String,
    pub title: String,
    /// One sentence.
    pub what: String,
    pub figures: Vec<Figure>,
    pub ratios: Vec<Ratio>,
    pub series: Vec<Series>,
    /// What a reader must know to judge the numbers, and where time went.
    pub notes: Vec<String>,
}

/// A number, once per round.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: String,
    pub rounds: Vec<f64>,
    #[serde(flatten)]
    pub spread: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Of the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// One figure in terms of another, once per round.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    pub name: String,
    pub numerator: String,
    pub denominator: String,
    pub rounds: Vec<f64>,
    #[serde(flatten)]
    pub spread: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Of the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A curve.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    pub name: String,
    pub x_label: String,
    pub y_label: String,
    /// In the order of `x`.
    pub points: Vec<Point>,
}

/// One point of a curve, measured once per round.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    pub x: f64,
    pub rounds: Vec<f64>,
    #[serde(flatten)]
    pub spread: Spread,
}

impl Section {
    pub fn new(name: &str, title: &str, what: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            what: what.to_owned(),
            figures: Vec::new(),
            ratios: Vec::new(),
            series: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Writes down what a figure was in this round; its first round makes it known.
    pub fn record(&mut self, name: &str, unit: &str, value: f64) {
        if let Some(figure) = self.figures.iter_mut().find(|figure| figure.name == name) {
            figure.rounds.push(value);
            figure.spread = Spread::of(&figure.rounds);
            return;
        }
        self.figures.push(Figure {
            name: name.to_owned(),
            unit: unit.to_owned(),
            rounds: vec![value],
            spread: Spread::of(&[value]),
            goal: None,
            verdict: None,
        });
    }

    /// Writes down a point of a curve in this round.
    pub fn plot(&mut self, name: &str, [x_label, y_label]: [&str; 2], x: f64, y: f64) {
        let at = self.series.iter().position(|series| series.name == name).unwrap_or_else(|| {
            self.series.push(Series {
                name: name.to_owned(),
                x_label: x_label.to_owned(),
                y_label: y_label.to_owned(),
                points: Vec::new(),
            });
            self.series.len() - 1
        });
        self.series[at].record(x, y);
    }

    /// A figure should be so; judged once all rounds are over.
    ///
    /// # Panics
    ///
    /// When nothing of that name was recorded, as below.
    pub fn expect(&mut self, name: &str, goal: Goal) {
        let figure = self.figures.iter_mut().find(|figure| figure.name == name);
        let figure = figure.unwrap_or_else(|| panic!("{name} was not recorded"));
        figure.goal = Some(goal);
        figure.verdict = Some(goal.judge(figure.spread.median));
    }

    /// Divides one figure by another, round by round, once all rounds are over.
    ///
    /// # Panics
    ///
    /// When a figure was not recorded, or not in every round: then the benchmark is wrong.
    pub fn compare(&mut self, name: &str, numerator: &str, denominator: &str, goal: Option<Goal>) {
        let (above, below) = (self.rounds_of(numerator), self.rounds_of(denominator));
        assert_eq!(above.len(), below.len(), "{numerator} and {denominator} had as many rounds");
        let rounds: Vec<f64> =
            above.iter().zip(below).map(|(above, below)| above / below).collect();
        let spread = Spread::of(&rounds);
        self.ratios.push(Ratio {
            name: name.to_owned(),
            numerator: numerator.to_owned(),
            denominator: denominator.to_owned(),
            rounds,
            spread,
            goal,
            verdict: goal.map(|goal| goal.judge(spread.median)),
        });
    }

    /// What a figure was, round by round.
    ///
    /// # Panics
    ///
    /// When nothing of that name was recorded.
    pub fn rounds_of(&self, name: &str) -> &[f64] {
        let figure = self.figures.iter().find(|figure| figure.name == name);
        &figure.unwrap_or_else(|| panic!("{name} was not recorded")).rounds
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The verdicts on everything that has a goal.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let figures = self.figures.iter().filter_map(|figure| figure.verdict);
        figures.chain(self.ratios.iter().filter_map(|ratio| ratio.verdict))
    }
}

impl Series {
    fn record(&mut self, x: f64, y: f64) {
        let at = match self.points.binary_search_by(|point| point.x.total_cmp(&x)) {
            Ok(at) => at,
            Err(at) => {
                self.points.insert(at, Point { x, rounds: Vec::new(), spread: Spread::default() });
                at
            }
        };
        let point = &mut self.points[at];
        point.rounds.push(y);
        point.spread = Spread::of(&point.rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        Section::new("x", "X", "Something.")
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let mut section = section();
        // The second round was twice as slow for everybody: the ratio does not care.
        for (ours, theirs) in [(40.0, 10.0), (20.0, 5.0), (45.0, 9.0)] {
            section.record("ours", "1/s", ours);
            section.record("theirs", "1/s", theirs);
        }
        section.compare("gain", "ours", "theirs", Some(Goal::AtLeast(4.0)));
        let ratio = &section.ratios[0];
        assert_eq!(ratio.rounds, [4.0, 4.0, 5.0]);
        assert_eq!(ratio.spread, Spread { median: 4.0, min: 4.0, max: 5.0 });
        assert_eq!(ratio.verdict, Some(Verdict::Met));
    }

    #[test]
    #[should_panic(expected = "had as many rounds")]
    fn a_figure_that_missed_a_round_is_not_compared() {
        let mut section = section();
        section.record("ours", "1/s", 1.0);
        section.record("ours", "1/s", 1.0);
        section.record("theirs", "1/s", 1.0);
        section.compare("gain", "ours", "theirs", None);
    }

    #[test]
    fn a_figure_may_have_a_goal_of_its_own() {
        let mut section = section();
        section.record("small", "B", 399.0);
        section.record("large", "B", 401.0);
        section.expect("small", Goal::AtMost(400.0));
        section.expect("large", Goal::AtMost(400.0));
        assert_eq!(section.verdicts().collect::<Vec<_>>(), [Verdict::Met, Verdict::Missed]);
    }

    #[test]
    fn points_of_a_curve_are_in_order_whatever_the_order_of_rounds() {
        let mut section = section();
        for (x, y) in [(1.0, 10.0), (100.0, 8.0), (100.0, 9.0), (10.0, 9.5), (1.0, 11.0)] {
            section.plot("curve", ["items", "orders/s"], x, y);
        }
        let points = &section.series[0].points;
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 10.0, 100.0]);
        assert_eq!(points[0].spread.median, 10.5);
    }
}
