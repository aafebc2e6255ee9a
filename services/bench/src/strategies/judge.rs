//! The law, on the books after a sale: the same sentences for every contestant.

use shared::domain::{Books, broken_laws};

/// What the books say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Units that buyers have and that were never taken from the stock.
    pub oversold: u64,
    pub broken: Vec<String>,
}

/// What buyers were told in a sale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Buyers who have been accepted, each of them for one unit.
    pub accepted: u64,
    /// Buyers who were told neither yes nor no: any of them may have an order.
    pub troubled: u64,
}

/// Judges items by their books, and their orders by what buyers were told.
pub fn judge(items: &[(String, Books)], orders: u64, told: Told) -> Judgement {
    let mut broken = Vec::new();
    for (item, books) in items {
        broken.extend(broken_laws(books).iter().map(|violation| format!("{item}: {violation}")));
    }
    if !(told.accepted..=told.accepted + told.troubled).contains(&orders) {
        let Told { accepted, troubled } = told;
        broken.push(format!(
            "{accepted} buyers were accepted and {troubled} got no answer, but {orders} have an order"
        ));
    }
    Judgement { oversold: items.iter().map(|(_, books)| oversold(books)).sum(), broken }
}

fn oversold(books: &Books) -> u64 {
    (books.confirmed_units + books.ledger_available).saturating_sub(books.total)
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
        most_by_one_buyer: 0,
        limit_per_buyer: None,
    };

    fn judged(books: Books, orders: u64, told: Told) -> Judgement {
        judge(&[("shoe".to_owned(), books)], orders, told)
    }

    #[test]
    fn books_that_agree_with_what_buyers_were_told_break_nothing() {
        let told = Told { accepted: 398, troubled: 3 };
        let fine = Judgement { oversold: 0, broken: Vec::new() };
        assert_eq!(judged(RIGHT, 400, told), fine);
    }

    #[test]
    fn a_unit_that_left_no_trace_in_the_stock_is_oversold_even_while_stock_lasts() {
        let told = Told { accepted: 403, troubled: 0 };
        let judgement = judged(Books { confirmed_units: 403, ..RIGHT }, 403, told);
        assert_eq!(judgement.oversold, 3);
        assert_eq!(judgement.broken.len(), 1, "{:?}", judgement.broken);
    }

    #[test]
    fn more_orders_or_fewer_than_buyers_were_told_break_the_law() {
        for (accepted, troubled) in [(399, 0), (401, 0), (390, 9), (401, 5)] {
            let judgement = judged(RIGHT, 400, Told { accepted, troubled });
            assert_eq!(judgement.broken.len(), 1, "{accepted} {troubled}");
        }
    }
}
