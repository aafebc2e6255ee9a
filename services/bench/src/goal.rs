//! What a number should be, and whether it is.

use std::fmt;

use serde::Serialize;

/// What a median should be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// Whether it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Met,
    Missed,
}

impl Goal {
    /// Judges a median; what is no number meets nothing.
    pub fn judge(self, median: f64) -> Verdict {
        let is_met = match self {
            Self::AtLeast(least) => median >= least,
            Self::AtMost(most) => median <= most,
        };
        if is_met { Verdict::Met } else { Verdict::Missed }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "missed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_judged_both_ways() {
        assert_eq!(Goal::AtLeast(4.0).judge(4.0), Verdict::Met);
        assert_eq!(Goal::AtLeast(4.0).judge(3.999), Verdict::Missed);
        assert_eq!(Goal::AtMost(400.0).judge(400.0), Verdict::Met);
        assert_eq!(Goal::AtMost(400.0).judge(400.1), Verdict::Missed);
    }

    #[test]
    fn what_is_no_number_meets_no_goal() {
        assert_eq!(Goal::AtLeast(0.0).judge(f64::NAN), Verdict::Missed);
        assert_eq!(Goal::AtMost(1.0).judge(f64::NAN), Verdict::Missed);
    }
}
