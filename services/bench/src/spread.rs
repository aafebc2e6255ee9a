//! What rounds came to: their median, and how far they lie apart.

use serde::Serialize;

/// Median, least and most of some values.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of nothing, it is all zero.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self { median, min: *min, max: *max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let of = |values: &[f64]| Spread::of(values);
        assert_eq!(of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert_eq!(of(&[]), Spread::default());
    }

    #[test]
    fn one_slow_round_moves_the_least_but_not_the_median() {
        let spread = Spread::of(&[100.0, 101.0, 5.0, 99.0, 102.0]);
        assert_eq!((spread.median, spread.min), (100.0, 5.0));
    }
}
