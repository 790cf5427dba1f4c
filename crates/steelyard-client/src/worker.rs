//! Messages to a worker: what helper threads (reconnection, topology) hand over, and what they share with the worker.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use rustix::fd::OwnedFd;
use steelyard_channel::Pipe;
use steelyard_wire::Order;

use crate::blocking_connection::Access;
use crate::routing::RoutingTable;
use crate::statements::Statements;

/// What all workers and their helper threads share; it never changes.
pub(crate) struct Shared {
    pub order: Order,
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

/// A worker as other threads see it: takes messages, also while the worker waits for answers.
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    pub messages: Sender<WorkerMessage>,
    /// Wakes the worker: an eventfd that its epoll watches.
    pub wake_up: Arc<OwnedFd>,
}

impl WorkerHandle {
    /// Hands a message to the worker and wakes it.
    pub fn send(&self, message: WorkerMessage) {
        // A worker that has ended takes no messages, and needs none.
        if self.messages.send(message).is_ok() {
            let _ = rustix::io::write(&*self.wake_up, &1_u64.to_ne_bytes());
        }
    }
}
