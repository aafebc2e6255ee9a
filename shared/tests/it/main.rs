//! What the rooms claim about their backends, shown on real ones.

mod devstack;
