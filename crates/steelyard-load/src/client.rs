//! The client interface: what the driving loop needs of a protocol.
//!
//! The loop owns time-outs, schedules and counts; a client owns connections and bytes. A client is used by one thread and
//! blocks only in `poll`; the loop is generic over it, so nothing is boxed or looked up for an operation.

use std::io;

use steelyard_workload::operation::Operation;

use crate::clock::{Clock, Nanos};
use crate::error_samples::ErrorSamples;
use crate::outcome::Outcome;

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The operation's place in flight.
    pub slot: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Rows of the answer.
    pub rows: u32,
    /// Read right before the write that sent it; `None` if it was never sent.
    pub sent: Option<Nanos>,
    /// When a connection was there to send it on, if it had to wait for one; else 0. That wait is the system's, not the
    /// generator's.
    pub ready: Nanos,
    /// Read right after the read that brought its answer.
    pub done: Nanos,
}

/// Why a load cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotBegin {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// Whether the cluster cannot be reached; else it refuses, or the order is not possible.
    pub is_away: bool,
}

/// The first operation that was sent to a node which was not there at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstSent {
    /// When.
    pub at: Nanos,
    /// The node's `address:port`.
    pub contact: String,
}

/// A protocol's side of the loop. A *slot* is a place in flight: the loop gives it at most one operation at a time.
pub trait Client: Send {
    /// Takes one step of an operation for an empty slot; it is sent at the next `poll`.
    fn submit(&mut self, slot: u32, operation: &Operation);

    /// Forgets the operation of a slot: if its answer still comes, it is dropped. Returns when it was sent, if it was.
    fn abandon(&mut self, slot: u32) -> Option<Nanos>;

    /// Sends what was submitted, then waits until something has ended, or until `until` at the latest (it may return
    /// earlier with nothing), and appends what has ended.
    ///
    /// Errors: only where this process itself is at fault; a lost connection is a completion.
    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()>;

    /// Connections that were lost and stand again.
    fn reconnections(&self) -> u64;

    /// Hands over what servers have said of errors since the last time.
    fn hand_over_errors(&mut self, _into: &mut ErrorSamples) {}

    /// Hands over to which new nodes operations were sent for the first time since the last call.
    fn hand_over_routed(&mut self, _into: &mut Vec<FirstSent>) {}
}
