//! Proofs about the whole line; never shipped.
