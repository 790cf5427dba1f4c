//! Slots of a client: the places in flight, each with its operation and where that is on its way.

use steelyard_load::client::Completion;
use steelyard_load::clock::Nanos;
use steelyard_load::outcome::Outcome;
use steelyard_workload::operation::Operation;

/// Where a slot's operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotState {
    /// There is none.
    #[default]
    Idle,
    /// No connection for it is up.
    Held,
    /// A connection has it.
    InFlight {
        /// The connection's number.
        connection: usize,
    },
}

/// A place in flight, with the operation that it holds and what the protocol keeps of that.
#[derive(Default)]
pub struct Slot<C> {
    /// The operation, at one of its steps.
    pub operation: Operation,
    /// What has come of its answer.
    pub course: C,
    /// Where it is.
    pub state: SlotState,
    /// How often an operation of this slot was given up in flight.
    pub turn: u32,
    /// When it was sent first.
    pub sent: Option<Nanos>,
    /// When a connection was there, if the operation was held for want of one.
    pub ready: Nanos,
}

impl<C> Slot<C> {
    /// It is given an operation.
    #[inline]
    pub fn begin(&mut self, operation: &Operation) {
        self.operation = *operation;
        (self.sent, self.ready) = (None, 0);
    }

    /// Its operation has ended, with `rows` if it ended well; the slot is empty afterwards.
    #[inline]
    pub fn end(&mut self, slot: u32, outcome: Outcome, rows: u32, done: Nanos) -> Completion {
        self.state = SlotState::Idle;
        Completion {
            slot,
            outcome,
            rows: if outcome == Outcome::Ok { rows } else { 0 },
            sent: self.sent,
            ready: self.ready,
            done,
        }
    }
}
