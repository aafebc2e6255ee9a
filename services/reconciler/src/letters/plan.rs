//! What a replay would do to stock and orders, counted. Nothing is sent, nothing is written.

use std::collections::BTreeMap;

use shared::domain::{ItemId, LetterClass, LetterContents, OrderState, ReplayEffect};
use shared::ledger::{Ledger, LetterFilter, LetterSort};
use shared::stock::Stock;

use super::{Judge, Judged, LETTERS_PAGE, LettersError};

/// All that a replay would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub letters: u64,
    pub by_class: BTreeMap<LetterClass, u64>,
    /// How letters would end, such as `confirmed`, `rejected:sold_out` or `dies_again`.
    pub by_effect: BTreeMap<String, u64>,
    pub items: BTreeMap<ItemId, ItemPlan>,
}

/// What a replay would do to one item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemPlan {
    pub letters: u64,
    pub new_orders: u64,
    /// Units that the ledger would sell.
    pub units_sold: u64,
    /// Units that are held now and would go back on sale in Redis.
    pub units_back: u64,
    /// Units that the ledger would sell although Redis holds none for them: Redis offers so many too
    /// many until the item is reconciled.
    pub units_not_held: u64,
}

/// Plans the replay of what fits the filter and, if it is said, is of this class. `on_page` hears how
/// many letters have been looked at.
pub async fn plan(
    ledger: &Ledger,
    stock: &Stock,
    filter: &LetterFilter,
    class: Option<LetterClass>,
    mut on_page: impl FnMut(u64),
) -> Result<Plan, LettersError> {
    let mut judge = Judge::open(ledger, stock).await?;
    let (mut plan, mut after, mut seen) = (Plan::default(), None, 0);
    loop {
        let page = ledger.list_letters(filter, LetterSort::Id, after, LETTERS_PAGE).await?;
        let Some(last) = page.last() else { return Ok(plan) };
        after = Some(last.letter_id);
        seen += page.len() as u64;
        let judged = judge.judge(page).await?;
        judged
            .iter()
            .filter(|one| class.is_none_or(|class| one.class == class))
            .for_each(|one| plan.add(one));
        on_page(seen);
    }
}

impl Plan {
    fn add(&mut self, judged: &Judged) {
        self.letters += 1;
        *self.by_class.entry(judged.class).or_default() += 1;
        *self.by_effect.entry(judged.effect.to_string()).or_default() += 1;
        let item = match &judged.contents {
            LetterContents::Reservation(reservation) => &reservation.item,
            LetterContents::Compensation { item, .. } => item,
            LetterContents::Foreign(_) | LetterContents::Unreadable => return,
        };
        let of_item = self.items.entry(item.clone()).or_default();
        of_item.letters += 1;
        let held = judged.hold.as_ref().filter(|_| judged.is_held());
        let held_units = held.map_or(0, |hold| hold.quantity.units());
        match &judged.effect {
            ReplayEffect::Decides(OrderState::Confirmed) => {
                let LetterContents::Reservation(reservation) = &judged.contents else { return };
                let units = reservation.quantity.units();
                of_item.new_orders += 1;
                of_item.units_sold += units;
                of_item.units_not_held += units.saturating_sub(held_units);
            }
            ReplayEffect::Decides(_) => {
                of_item.new_orders += 1;
                of_item.units_back += held_units;
            }
            ReplayEffect::Repeats(OrderState::Confirmed) => {}
            ReplayEffect::Repeats(_) | ReplayEffect::Surplus | ReplayEffect::Restores => {
                of_item.units_back += held_units;
            }
            ReplayEffect::DiesAgain | ReplayEffect::NotSent => {}
        }
    }
}
