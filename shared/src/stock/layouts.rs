//! How items are laid out in Redis, as far as this process knows, and who asks which bucket.
//!
//! A bucket that is asked under an old layout says so and does nothing else. So nobody has to know the
//! right one: what was known last is tried, and what the bucket says is tried next.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};

use super::keys::Bucket;
use super::reply::Words;
use super::{Stock, StockError};
use crate::config::limits::SETTLE_BATCH;
use crate::domain::{BucketCount, BuyerId, ItemId, home_bucket};

/// How an item is laid out in Redis, as far as the caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub epoch: u64,
    pub buckets: BucketCount,
}

impl Layout {
    /// Of an item of which nothing is known. Its first bucket exists in every layout, and says which
    /// one it has.
    pub const UNREAD: Self = Self { epoch: 0, buckets: BucketCount::ONE };
}

/// What a bucket said to somebody who took it for a home.
#[derive(Debug)]
pub(super) enum AtHome<T> {
    Answered(T),
    /// The layout is another one; nothing was looked at.
    Moved(Layout),
}

/// Reads the first element of a script's replies, which says whether the others follow.
pub(super) fn at_home<'a>(
    script: &'static str,
    replies: &'a [String],
) -> Result<AtHome<&'a [String]>, StockError> {
    let (head, replies) = replies.split_first().ok_or_else(|| StockError::malformed(script, ""))?;
    let mut head = Words::of(script, head);
    match head.word()? {
        "ok" => Ok(AtHome::Answered(replies)),
        "moved" => head.layout().map(AtHome::Moved),
        _ => Err(head.malformed()),
    }
}

/// The layouts that were seen last; clones share them.
#[derive(Clone, Default)]
pub(super) struct Layouts(Arc<RwLock<HashMap<ItemId, Layout>>>);

/// A layout changes once in a warm-up; more than this in a row is not a layout but a fault.
const LAYOUTS_TRIED: usize = 3;

impl Stock {
    /// The layout of an item that was seen last.
    pub fn layout(&self, item: &ItemId) -> Layout {
        let known = self.layouts.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(item).copied().unwrap_or(Layout::UNREAD)
    }

    /// Remembers what a bucket has said of its item.
    pub fn learn(&self, item: &ItemId, layout: Layout) {
        let mut known = self.layouts.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(item.clone(), layout);
    }

    /// Asks about many buyers, each in the home bucket; the answers are in their order. What was
    /// answered stays answered when a later part fails: everything may be asked again.
    pub(super) async fn at_homes<'a, T, R, F>(
        &self,
        item: &ItemId,
        all: &'a [T],
        buyer: impl Fn(&T) -> &BuyerId,
        ask: impl Fn(Bucket, BucketCount, Vec<&'a T>) -> F,
    ) -> Result<Vec<R>, StockError>
    where
        F: Future<Output = Result<AtHome<Vec<R>>, StockError>>,
    {
        let mut answers: Vec<Option<R>> = all.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..all.len()).collect();
        for _ in 0..LAYOUTS_TRIED {
            let buckets = self.layout(item).buckets;
            let mut by_home: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
            for position in std::mem::take(&mut open) {
                let number = home_bucket(buyer(&all[position]), buckets);
                by_home.entry(number).or_default().push(position);
            }
            for (number, positions) in by_home {
                for positions in positions.chunks(SETTLE_BATCH) {
                    let bucket = Bucket { item: item.clone(), number };
                    let part = positions.iter().map(|at| &all[*at]).collect();
                    match ask(bucket, buckets, part).await? {
                        AtHome::Moved(layout) => {
                            self.learn(item, layout);
                            open.extend(positions);
                        }
                        AtHome::Answered(part) => {
                            for (position, answer) in positions.iter().zip(part) {
                                answers[*position] = Some(answer);
                            }
                        }
                    }
                }
            }
            if open.is_empty() {
                return Ok(answers.into_iter().flatten().collect());
            }
        }
        Err(StockError::Unsteady { item: item.clone() })
    }
}
