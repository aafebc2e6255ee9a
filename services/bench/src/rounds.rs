//! The order in which contestants run.

/// The order of so many contestants in a round: forwards and backwards in turn, so that whoever
/// comes later, on a warmer or a busier machine, is not always the same.
pub fn order(round: u32, contestants: usize) -> Vec<usize> {
    let forwards = 0..contestants;
    if round.is_multiple_of(2) { forwards.collect() } else { forwards.rev().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_alternates() {
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(1, 3), [2, 1, 0]);
        assert_eq!(order(2, 3), [0, 1, 2]);
    }
}
