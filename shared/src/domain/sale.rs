//! What is on sale: how many units, to whom, and when.

use super::{ItemId, UnixMillis};

/// When an item can be bought: `opens_at ≤ now < closes_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    opens_at: UnixMillis,
    closes_at: UnixMillis,
}

/// An item on sale, as it is put into the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sale {
    pub item: ItemId,
    /// Units to sell.
    pub total: u64,
    /// The most units one buyer may hold or buy; `None` sets no limit.
    pub limit_per_buyer: Option<u64>,
    pub window: Window,
}

/// A sale that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSale {
    #[error("a sale must open before it closes")]
    ClosesBeforeItOpens,
    #[error("a total must be at most {}", Sale::MAX_TOTAL)]
    TotalTooLarge,
    #[error("a limit per buyer must be from 1 to {}", Sale::MAX_TOTAL)]
    LimitOutOfRange,
}

impl Window {
    /// Checks that the window is not empty.
    pub fn new(opens_at: UnixMillis, closes_at: UnixMillis) -> Result<Self, InvalidSale> {
        if opens_at < closes_at {
            Ok(Self { opens_at, closes_at })
        } else {
            Err(InvalidSale::ClosesBeforeItOpens)
        }
    }

    /// The first instant at which the item can be bought.
    pub fn opens_at(&self) -> UnixMillis {
        self.opens_at
    }

    /// The first instant at which it can no longer be bought.
    pub fn closes_at(&self) -> UnixMillis {
        self.closes_at
    }
}

impl Sale {
    /// The most units an item may have; all sums of units then stay far below 2^53, where Lua's
    /// numbers stop being exact.
    pub const MAX_TOTAL: u64 = 1_000_000_000;

    /// Checks the bounds of a sale.
    pub fn new(
        item: ItemId,
        total: u64,
        limit_per_buyer: Option<u64>,
        window: Window,
    ) -> Result<Self, InvalidSale> {
        if total > Self::MAX_TOTAL {
            return Err(InvalidSale::TotalTooLarge);
        }
        if limit_per_buyer.is_some_and(|limit| !(1..=Self::MAX_TOTAL).contains(&limit)) {
            return Err(InvalidSale::LimitOutOfRange);
        }
        Ok(Self { item, total, limit_per_buyer, window })
    }

    /// True when the other sale is the same but for its window.
    pub fn differs_only_in_window(&self, other: &Self) -> bool {
        Self { window: other.window, ..self.clone() } == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sale_keeps_its_bounds() {
        let window = Window::new(UnixMillis(1), UnixMillis(2)).expect("a window");
        let sale = |total, limit| Sale::new("a".parse().expect("an item"), total, limit, window);
        assert!(sale(0, None).is_ok());
        assert!(sale(Sale::MAX_TOTAL, Some(1)).is_ok());
        assert_eq!(sale(Sale::MAX_TOTAL + 1, None), Err(InvalidSale::TotalTooLarge));
        assert_eq!(sale(1, Some(0)), Err(InvalidSale::LimitOutOfRange));
    }

    #[test]
    fn a_window_opens_before_it_closes() {
        assert_eq!(
            Window::new(UnixMillis(2), UnixMillis(2)),
            Err(InvalidSale::ClosesBeforeItOpens)
        );
    }
}
