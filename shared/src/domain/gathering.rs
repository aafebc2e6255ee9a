//! Which units move between the buckets of an item, so that purchases can be served whose home buckets
//! are short.

use std::collections::BTreeMap;

/// A purchase that its home bucket could not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Number of the home bucket.
    pub home: u16,
    /// Units that the purchase asks for.
    pub units: u64,
}

/// Units that move from one bucket to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub from: u16,
    pub to: u16,
    pub units: u64,
}

/// Serves purchases in their order, as long as units are left, each from its home bucket first and then
/// from the fullest ones, so that few buckets have to be asked. `available` is by number of bucket.
pub fn gather(available: &[u64], shortages: &[Shortage]) -> Vec<Move> {
    let mut left = available.to_vec();
    let mut moves: BTreeMap<(u16, u16), u64> = BTreeMap::new();
    for shortage in shortages {
        let home = usize::from(shortage.home);
        if home >= left.len() || left.iter().sum::<u64>() < shortage.units {
            continue;
        }
        let own = left[home].min(shortage.units);
        left[home] -= own;
        let mut missing = shortage.units - own;
        while missing > 0 {
            let Some((from, most)) = (0u16..).zip(&mut left).max_by_key(|(_, units)| **units)
            else {
                break;
            };
            let taken = missing.min(*most);
            *most -= taken;
            missing -= taken;
            *moves.entry((from, shortage.home)).or_default() += taken;
        }
    }
    moves.into_iter().map(|((from, to), units)| Move { from, to, units }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(home: u16, units: u64) -> Shortage {
        Shortage { home, units }
    }

    fn moving(from: u16, to: u16, units: u64) -> Move {
        Move { from, to, units }
    }

    #[test]
    fn missing_units_come_from_the_fullest_buckets() {
        assert_eq!(gather(&[0, 5, 9], &[short(0, 3)]), [moving(2, 0, 3)]);
        assert_eq!(gather(&[1, 2, 2], &[short(0, 4)]), [moving(1, 0, 1), moving(2, 0, 2)]);
    }

    #[test]
    fn purchases_of_one_home_share_a_move() {
        assert_eq!(gather(&[0, 9], &[short(0, 3), short(0, 2)]), [moving(1, 0, 5)]);
    }

    #[test]
    fn what_is_at_home_by_now_does_not_move() {
        assert_eq!(gather(&[3, 9], &[short(0, 3)]), []);
    }

    #[test]
    fn what_cannot_be_served_leaves_the_units_to_others() {
        assert_eq!(gather(&[0, 2], &[short(0, 3), short(0, 2)]), [moving(1, 0, 2)]);
        assert_eq!(gather(&[0, 0], &[short(0, 1)]), []);
        assert_eq!(gather(&[4], &[short(7, 1)]), [], "of another layout");
    }
}
