//! Judges a sale by nothing but what was asked and answered, and when.
//!
//! It may only claim what follows from that for certain. A request that nobody got an answer to may
//! have had an effect; an effect happened at some moment between question and answer.

mod file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use shared::domain::{Order, OrderState, RequestId};
use shared::ledger::OrderCounts;

use self::file::{End, File};
use crate::buyer::Answer;

/// What somebody wants; buyer and key name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Purchase {
    pub buyer: String,
    pub key: String,
    pub quantity: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    ToBuy,
    HowItStands,
}

/// A question, and the answer if one came.
#[derive(Debug, Clone)]
pub struct Heard {
    pub purchase: Purchase,
    pub asked: Asked,
    pub at: Instant,
    /// When the answer was there, or was given up.
    pub until: Instant,
    pub answer: Option<Answer>,
}

/// What was for sale.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub total: u64,
    pub limit_per_buyer: u64,
}

/// The numbers of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub purchases: usize,
    pub accepted: usize,
    pub confirmed: usize,
    pub expired: usize,
    pub refused: usize,
}

/// Everything that was said, purchase by purchase.
pub struct Auditor {
    terms: Terms,
    files: BTreeMap<Purchase, File>,
    /// Only these may have lost what was held for them.
    asked_back: HashSet<Purchase>,
}

impl Auditor {
    /// `asked_back` are purchases whose stock somebody asked back before they were decided.
    pub fn new(terms: Terms, mut heard: Vec<Heard>, asked_back: HashSet<Purchase>) -> Self {
        heard.sort_by_key(|one| one.at);
        let mut files: BTreeMap<Purchase, File> = BTreeMap::new();
        for one in heard {
            files.entry(one.purchase.clone()).or_default().heard.push(one);
        }
        Self { terms, files, asked_back }
    }

    pub fn tally(&self) -> Tally {
        let count = |of: fn(&File) -> bool| self.files.values().filter(|file| of(file)).count();
        Tally {
            purchases: self.files.len(),
            accepted: count(|file| file.accepted_at().is_some()),
            confirmed: count(File::is_confirmed),
            expired: count(|file| file.end() == End::Final("expired".to_owned())),
            refused: count(|file| file.end() == End::Refused),
        }
    }

    /// Everything that was said and cannot be right.
    pub fn judge(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (purchase, file) in &self.files {
            let Purchase { buyer, key, .. } = purchase;
            let of_this = |error: String| format!("{buyer} {key}: {error}");
            let may_expire = self.asked_back.contains(purchase);
            wrong.extend(file.judge(purchase, may_expire).into_iter().map(of_this));
            wrong.extend(self.unjust_refusals(purchase, file).into_iter().map(of_this));
        }
        let mut known = HashMap::new();
        for (purchase, file) in &self.files {
            for id in file.request_ids() {
                if let Some(other) = known.insert(id.to_owned(), purchase)
                    && other != purchase
                {
                    wrong.push(format!("{other:?} and {purchase:?} are both request {id}"));
                }
            }
        }
        let Terms { total, limit_per_buyer } = self.terms;
        let confirmed = || self.files.iter().filter(|(_, file)| file.is_confirmed());
        let units: u64 = confirmed().map(|(purchase, _)| u64::from(purchase.quantity)).sum();
        if units > total {
            wrong.push(format!("{units} units are confirmed, {total} were on sale"));
        }
        let mut bought: BTreeMap<&str, u64> = BTreeMap::new();
        for (purchase, _) in confirmed() {
            *bought.entry(&purchase.buyer).or_default() += u64::from(purchase.quantity);
        }
        for (buyer, units) in bought.into_iter().filter(|(_, units)| *units > limit_per_buyer) {
            wrong.push(format!("{buyer} has {units} units, the limit is {limit_per_buyer}"));
        }
        wrong
    }

    /// Where the ledger and what was said disagree. `orders` are those of every purchase.
    pub fn compare(
        &self,
        id_of: impl Fn(&Purchase) -> RequestId,
        orders: &HashMap<RequestId, Order>,
        counts: &OrderCounts,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let (mut confirmed, mut others) = (0, 0);
        for (purchase, file) in &self.files {
            let order = orders.get(&id_of(purchase));
            let Some(order) = order else {
                if file.accepted_at().is_some() {
                    wrong.push(format!("{purchase:?} was accepted, and the ledger has no order"));
                }
                continue;
            };
            let state = match order.state {
                OrderState::Confirmed => "confirmed",
                OrderState::Rejected(_) => "rejected",
                OrderState::Expired(_) => "expired",
            };
            *(if state == "confirmed" { &mut confirmed } else { &mut others }) += 1;
            let same = order.buyer.as_str() == purchase.buyer
                && order.quantity.units() == u64::from(purchase.quantity);
            if !same || file.end() != End::Final(state.to_owned()) {
                wrong.push(format!(
                    "{purchase:?} ended as {:?}, the ledger has {order:?}",
                    file.end()
                ));
            }
        }
        if (counts.confirmed, counts.rejected + counts.expired) != (confirmed, others) {
            wrong.push(format!(
                "purchases have {confirmed} confirmed orders and {others} others; the ledger has {counts:?}"
            ));
        }
        wrong
    }

    /// Refusals for which there was no reason at any moment between question and answer: even if
    /// everything that ever became an order, and was asked for before the answer came, had been
    /// taken at that moment, there was enough for this one.
    fn unjust_refusals(&self, purchase: &Purchase, file: &File) -> Vec<String> {
        let taken = |until: Instant, same_buyer: bool| -> u64 {
            self.files
                .iter()
                .filter(|(other, _)| *other != purchase)
                .filter(|(other, _)| !same_buyer || other.buyer == purchase.buyer)
                .filter(|(_, other)| other.may_have_taken(until))
                .map(|(other, _)| u64::from(other.quantity))
                .sum()
        };
        let refusals = file.answers().filter(|(_, answer)| answer.status == 409);
        let mut unjust = Vec::new();
        for (heard, answer) in refusals {
            let code = answer.text("code");
            let (taken, most) = match code {
                "sold_out" => (taken(heard.until, false), self.terms.total),
                _ => (taken(heard.until, true), self.terms.limit_per_buyer),
            };
            if taken + u64::from(purchase.quantity) <= most {
                unjust.push(format!(
                    "{code} for {} units, when at most {taken} of {most} were taken",
                    purchase.quantity
                ));
            }
        }
        unjust
    }
}
