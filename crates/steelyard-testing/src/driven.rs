//! Loads that tests drive: the records of one, and whether they add up.

use std::sync::atomic::AtomicBool;

use steelyard_load::client::Client;
use steelyard_load::clock::Clock;
use steelyard_load::drive;
use steelyard_wire::{Connected, Done, Interval, Order, Record};

/// What a load says: its first and last records, its intervals, and the nodes that were new.
pub struct Driven {
    /// The first record.
    pub connected: Connected,
    /// In their order.
    pub intervals: Vec<Interval>,
    /// Contacts of nodes that were new.
    pub routed: Vec<String>,
    /// The last record of the last phase.
    pub done: Done,
}

impl Driven {
    /// Everything that was sent has ended, well or not.
    pub fn nothing_is_lost(&self) {
        let sum = |count: fn(&Interval) -> u64| self.intervals.iter().map(count).sum::<u64>();
        assert_eq!(sum(|interval| interval.sent), self.done.operations + self.done.errors);
        assert_eq!(sum(|interval| interval.done), self.done.operations + self.done.errors);
    }

    /// How many responses took longer.
    pub fn later_than(&self, ms: u64) -> u64 {
        let counts = self.intervals.iter().flat_map(|interval| &interval.counts);
        let buckets = counts
            .filter(|counts| counts.measure == "response")
            .flat_map(|counts| &counts.buckets);
        let late = buckets
            .filter(|(low, ..)| *low > ms * 1_000_000)
            .map(|(.., count)| count);
        late.sum()
    }
}

/// Carries out an order with clients that are connected.
pub fn drive<C: Client>((clients, connected): (Vec<C>, Connected), order: &Order, stop: &AtomicBool) -> Driven {
    let mut out = Vec::new();
    drive::run(clients, order, Clock::start(), stop, &mut out).unwrap();
    let (mut intervals, mut routed, mut done) = (Vec::new(), Vec::new(), None);
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line).unwrap() {
            Record::Interval(interval) => intervals.push(interval),
            Record::Routed(node) => routed.push(node.contact),
            Record::Done(end) => done = Some(end),
            other => panic!("{other:?}"),
        }
    }
    Driven {
        connected,
        intervals,
        routed,
        done: done.unwrap(),
    }
}
