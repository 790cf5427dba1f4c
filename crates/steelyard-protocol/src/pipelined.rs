//! Protocols whose answers come in the order of the requests, so that many are in flight on a connection: what one has to say for the
//! client (`client`) to carry a load over it.

use std::collections::VecDeque;

use steelyard_channel::Pipe;
use steelyard_channel::line::Line;
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_workload::operation::Operation;

use crate::slot::Slot;
use crate::{ConnectError, Malformed};

/// What an answer means for its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has ended.
    Ended(Outcome),
    /// Another request follows.
    Next,
    /// Its request goes to another node, behind a request whose answer is no operation's; empty: none.
    To {
        /// The node's number; its contact is known.
        node: usize,
        /// The request before.
        behind: &'static [u8],
    },
}

/// A worker's side of a protocol. The connections of node n are the `per_node` from n times that on.
pub trait Pipelined: Send + 'static {
    /// What is kept of an operation.
    type Course: Default + Send;
    /// What is known of a connection: how much of an answer has come, and whose they are.
    type Peer: Default + Send + 'static;
    /// What it takes to make a connection.
    type Access: Send + Sync + 'static;

    /// A non-blocking connection over which requests can be sent, and nothing is outstanding.
    ///
    /// # Errors
    ///
    /// The contact cannot be reached, or refuses.
    fn open(access: &Self::Access, contact: &str) -> Result<(Pipe, Self::Peer), ConnectError>;

    /// The contact of a node; `None`: there are not as many.
    fn contact(&self, node: usize) -> Option<&str>;

    /// The number of the node at a contact, which may be new; `None`: it is one too many.
    fn node_at(&mut self, contact: &str) -> Option<usize>;

    /// Begins an operation, or a step of it.
    fn begin(&self, operation: &Operation, course: &mut Self::Course);

    /// The connection for the request that the operation is at, among those that are up; `None`: it waits for one.
    fn choose(
        &mut self,
        operation: &Operation,
        course: &Self::Course,
        connections: &[Connection<Self::Peer>],
    ) -> Option<usize>;

    /// Appends the request that the operation is at.
    fn put(&mut self, operation: &Operation, course: &Self::Course, out: &mut Vec<u8>);

    /// Where the answer ends that `input` begins with; `None`: not all of it has come. The next call is given the same bytes
    /// and more, or those after the end.
    ///
    /// # Errors
    ///
    /// No answer.
    fn end(peer: &mut Self::Peer, input: &[u8]) -> Result<Option<usize>, Malformed>;

    /// What the answer of a node to the operation's request means. The text of an error goes to `samples`.
    ///
    /// # Errors
    ///
    /// Not an answer to that request.
    fn take(
        &mut self,
        slot: &mut Slot<Self::Course>,
        answer: &[u8],
        from: (usize, &mut Self::Peer),
        samples: &mut ErrorSamples,
    ) -> Result<Taken, Malformed>;

    /// Rows of the answers so far.
    fn rows(course: &Self::Course) -> u32;

    /// Looks at an answer that concerns no operation; whether operations that are held may now find a connection.
    fn overhear(&mut self, _peer: &mut Self::Peer, _answer: &[u8]) -> bool {
        false
    }

    /// Connections have come to stand, or were lost.
    fn changed(&mut self) {}

    /// The operation was held for want of a connection, and is dispatched again.
    fn waited(_course: &mut Self::Course) {}

    /// While operations are held: appends a request whose answer may show a way for them, if there is one. Whether it has.
    fn ask(_peer: &Self::Peer, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// What the server said last, of what has come without being an answer before the connection was lost.
    fn last_words(_input: &[u8]) -> Option<String> {
        None
    }
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// A slot, at that turn of it; if it has another by now, its operation was given up and the answer is dropped.
    Slot { slot: u32, turn: u32 },
    /// No operation.
    None,
}

/// A connection to a node, up or lost.
#[derive(Default)]
pub struct Connection<P> {
    pub(crate) line: Line,
    /// What is owed, in the order in which it comes.
    pub(crate) owed: VecDeque<Owed>,
    /// What is known of it while it is up.
    pub peer: P,
    /// Its node is no longer in service: nothing more is sent to it.
    pub(crate) has_left: bool,
}

impl<P> Connection<P> {
    /// Whether it is established, to a node in service.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.line.is_up() && !self.has_left
    }
}

/// A connection that is up of `count` from `first` on, all of them in turn.
#[inline]
pub fn in_turn<P>(connections: &[Connection<P>], first: usize, count: usize, turn: usize) -> Option<usize> {
    let connections = connections.get(first..first + count)?;
    (0..count)
        .map(|step| (turn + step) % count)
        .find(|step| connections[*step].is_up())
        .map(|step| first + step)
}
