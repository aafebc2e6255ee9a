//! The states that were met, each once. Whole states are compared, so a collision of hashes costs
//! time and never a state.

use std::hash::{Hash, Hasher};

use crate::state::State;

/// A state's place in the order of being met.
pub type Index = u32;

const FREE: Index = Index::MAX;

/// Open addressing over indices: a `HashMap` would keep every state a second time. Each place has a
/// part of its state's hash, so that most comparisons need not fetch the state.
#[derive(Default)]
pub struct Seen {
    states: Vec<State>,
    table: Vec<(u32, Index)>,
}

impl Seen {
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub fn get(&self, index: Index) -> &State {
        &self.states[index as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &State> {
        self.states.iter()
    }

    /// The state's index, and whether it is new.
    pub fn insert(&mut self, state: State) -> (Index, bool) {
        if self.states.len() * 2 >= self.table.len() {
            self.grow();
        }
        let hash = hash(&state);
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let (other, index) = self.table[at];
            if index == FREE {
                break;
            }
            if other == hash && self.states[index as usize] == state {
                return (index, false);
            }
            at = (at + 1) & mask;
        }
        let index = Index::try_from(self.states.len()).unwrap_or(FREE);
        assert!(index != FREE, "more states than can be counted");
        self.table[at] = (hash, index);
        self.states.push(state);
        (index, true)
    }

    fn grow(&mut self) {
        let mask = (self.table.len() * 2).max(1024) - 1;
        let old = std::mem::replace(&mut self.table, vec![(0, FREE); mask + 1]);
        for (hash, index) in old.into_iter().filter(|(_, index)| *index != FREE) {
            let mut at = hash as usize & mask;
            while self.table[at].1 != FREE {
                at = (at + 1) & mask;
            }
            self.table[at] = (hash, index);
        }
    }
}

fn hash(state: &State) -> u32 {
    let mut hasher = Mixer(0);
    state.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

/// Multiply and rotate: the standard hasher withstands attackers, of which there are none here, and
/// takes most of the search's time.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
