//! Slots of the CQL client: the places in flight, each with its operation and where that is on its way.

use steelyard_load::client::Completion;
use steelyard_load::clock::Nanos;
use steelyard_load::outcome::Outcome;
use steelyard_workload::operation::Operation;

/// Where a slot's operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Idle,
    /// No connection is up.
    Held,
    /// In flight on that stream.
    InFlight {
        connection: u16,
        stream: u16,
    },
    /// Waits until that connection's node has prepared its statement again.
    Preparing {
        connection: u16,
    },
}

/// A place in flight, with the operation that it holds.
pub(crate) struct Slot {
    pub operation: Operation,
    /// Number of its request among the order's.
    pub request: u32,
    pub state: SlotState,
    /// Pages of its answer that have come, and their rows.
    pub pages: u32,
    pub rows: u32,
    /// Where the last page has ended.
    pub paging_state: Vec<u8>,
    pub sent: Option<Nanos>,
    /// When a node was back, if the operation was held for want of one.
    pub ready: Nanos,
}

impl Slot {
    /// An empty slot.
    pub fn new() -> Self {
        Self {
            operation: Operation::default(),
            request: 0,
            state: SlotState::Idle,
            pages: 0,
            rows: 0,
            paging_state: Vec::new(),
            sent: None,
            ready: 0,
        }
    }

    /// Its operation has ended; the slot is empty afterwards.
    #[inline]
    pub fn end(&mut self, slot: u32, outcome: Outcome, rows: u32, done: Nanos) -> Completion {
        self.state = SlotState::Idle;
        Completion {
            slot,
            outcome,
            rows,
            sent: self.sent,
            ready: self.ready,
            done,
        }
    }
}
