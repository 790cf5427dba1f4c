//! Messages to a worker: what helper threads (reconnection, topology) hand over, and what they share with the worker.

use std::sync::Arc;

use steelyard_channel::Pipe;
use steelyard_wire::{Cql, Order};

use crate::blocking_connection::Access;
use crate::routing::RoutingTable;
use crate::statements::Statements;

/// What all workers and their helper threads share; it never changes.
pub(crate) struct Shared {
    pub order: Order,
    pub target: Cql,
    pub statements: Statements,
    pub access: Access,
}

/// A message of a helper thread to a worker.
pub(crate) enum WorkerMessage {
    /// A connection is established, again or for the first time.
    Up {
        number: usize,
        pipe: Pipe,
        ids: Vec<Vec<u8>>,
    },
    /// Nodes or their tokens have changed: the new routing table.
    Routing(Arc<RoutingTable>),
}
