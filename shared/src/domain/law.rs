//! The law of a sale, as numbers that must agree once nothing is moving any more.

/// What the ledger and Redis say of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    /// Units on sale.
    pub total: u64,
    /// Units of confirmed orders, counted order by order.
    pub confirmed_units: u64,
    /// The ledger's counter of what is left.
    pub ledger_available: u64,
    /// What Redis still sells; `None` when the item is not in Redis.
    pub redis_available: Option<u64>,
    /// Holds that wait for a settlement.
    pub held: u64,
    /// The most units that any buyer has confirmed.
    pub most_by_one_buyer: u64,
    pub limit_per_buyer: Option<u64>,
}

/// A sentence of the law that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("oversold: {confirmed_units} units are confirmed of {total}")]
    Oversold { confirmed_units: u64, total: u64 },
    #[error(
        "the ledger contradicts itself: {total} in total less {confirmed_units} confirmed is not {available} available"
    )]
    LedgerContradictsItself { total: u64, confirmed_units: u64, available: u64 },
    #[error("Redis sells {redis} units, the ledger has {ledger}")]
    Drift { redis: u64, ledger: u64 },
    #[error("the item is not in Redis")]
    NotInRedis,
    #[error("{held} holds are neither confirmed nor restored")]
    StillHeld { held: u64 },
    #[error("a buyer has {units} units, the limit is {limit}")]
    LimitExceeded { units: u64, limit: u64 },
}

impl Books {
    /// Units that Redis sells too many (positive) or too few (negative).
    pub fn drift(&self) -> Option<i64> {
        let signed = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        self.redis_available.map(|redis| signed(redis) - signed(self.ledger_available))
    }
}

/// Every sentence of the law that these books break; none when the sale is settled and right.
pub fn broken_laws(books: &Books) -> Vec<Violation> {
    let Books { total, confirmed_units, ledger_available, held, .. } = *books;
    let mut broken = Vec::new();
    if confirmed_units > total {
        broken.push(Violation::Oversold { confirmed_units, total });
    }
    if confirmed_units + ledger_available != total {
        let available = ledger_available;
        broken.push(Violation::LedgerContradictsItself { total, confirmed_units, available });
    }
    match books.redis_available {
        None => broken.push(Violation::NotInRedis),
        Some(redis) if redis != ledger_available => {
            broken.push(Violation::Drift { redis, ledger: ledger_available });
        }
        Some(_) => {}
    }
    if held > 0 {
        broken.push(Violation::StillHeld { held });
    }
    if let Some(limit) = books.limit_per_buyer
        && books.most_by_one_buyer > limit
    {
        broken.push(Violation::LimitExceeded { units: books.most_by_one_buyer, limit });
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: Books = Books {
        total: 500,
        confirmed_units: 400,
        ledger_available: 100,
        redis_available: Some(100),
        held: 0,
        most_by_one_buyer: 2,
        limit_per_buyer: Some(2),
    };

    #[test]
    fn books_that_agree_break_nothing() {
        assert_eq!(broken_laws(&RIGHT), []);
        assert_eq!(RIGHT.drift(), Some(0));
    }

    #[test]
    fn each_number_that_is_wrong_breaks_a_law() {
        let wrong = [
            Books { confirmed_units: 501, ..RIGHT },
            Books { ledger_available: 99, ..RIGHT },
            Books { redis_available: Some(101), ..RIGHT },
            Books { redis_available: None, ..RIGHT },
            Books { held: 1, ..RIGHT },
            Books { most_by_one_buyer: 3, ..RIGHT },
        ];
        for books in wrong {
            assert!(!broken_laws(&books).is_empty(), "{books:?}");
        }
    }
}
