//! Which node of a cluster serves which hash slot, as far as a worker knows.

use std::ops::RangeInclusive;

use crate::hash_slots::COUNT;

/// The node of a hash slot that no node is known to serve.
const NO_NODE: u16 = u16::MAX;

/// Which node serves which hash slot.
#[derive(Clone)]
pub(crate) struct Owners {
    by_slot: Vec<u16>,
    /// The node that serves all of them, so that no key need be hashed.
    only: Option<u16>,
}

impl Owners {
    /// Of a server that is no cluster.
    pub fn single() -> Self {
        Self::of_ranges([(0..=COUNT as u16 - 1, 0)])
    }

    /// As a cluster says; no node is known for the other hash slots.
    pub fn of_ranges(ranges: impl IntoIterator<Item = (RangeInclusive<u16>, usize)>) -> Self {
        let mut by_slot = vec![NO_NODE; COUNT];
        for (slots, node) in ranges {
            slots.for_each(|slot| by_slot[usize::from(slot)] = node as u16);
        }
        let first = by_slot[0];
        let only = by_slot.iter().all(|node| *node == first).then_some(first);
        Self { by_slot, only }
    }

    /// The node that serves a hash slot; a number that no node has, where none is known.
    #[inline]
    pub fn of(&self, slot: impl FnOnce() -> u16) -> usize {
        usize::from(self.only.unwrap_or_else(|| self.by_slot[usize::from(slot())]))
    }

    pub fn learn(&mut self, slot: u16, node: usize) {
        self.by_slot[usize::from(slot)] = node as u16;
        self.only = None;
    }
}
