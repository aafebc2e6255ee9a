//! How many units one purchase takes.

use std::fmt;

/// 1–1,000,000 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quantity(u32);

/// A number of units that no purchase can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a quantity must be a whole number from 1 to {}", Quantity::MAX)]
pub struct InvalidQuantity;

impl Quantity {
    /// The most units that one purchase may ask for.
    pub const MAX: u32 = 1_000_000;

    /// Checks the range.
    pub fn new(units: u64) -> Result<Self, InvalidQuantity> {
        match u32::try_from(units) {
            Ok(units) if (1..=Self::MAX).contains(&units) => Ok(Self(units)),
            _ => Err(InvalidQuantity),
        }
    }

    /// The number of units.
    pub fn units(self) -> u64 {
        u64::from(self.0)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_at_least_one_and_at_most_a_million() {
        assert_eq!(Quantity::new(1).map(Quantity::units), Ok(1));
        assert_eq!(Quantity::new(1_000_000).map(Quantity::units), Ok(1_000_000));
        for units in [0, 1_000_001, 1 << 31, 1 << 32, (1 << 32) + 1, u64::MAX] {
            assert_eq!(Quantity::new(units), Err(InvalidQuantity), "{units}");
        }
    }
}
