//! What a client's workers and its helper threads share, and the thread that makes a connection, which may block.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use steelyard_channel::{Backoff, MailSender, Pipe};

use crate::pipelined::Pipelined;

/// What a worker is told.
pub(crate) enum Message<P> {
    /// A connection stands, again or for the first time.
    Up { number: usize, pipe: Pipe, peer: P },
    /// A node is in service from now on, or no longer.
    Service { contact: String, is_in_service: bool },
}

/// What all workers and their helper threads share.
pub(crate) struct Shared<A> {
    pub access: A,
    pub per_node: usize,
    /// Nodes that were not there at first and were sent operations.
    joined: Mutex<HashSet<String>>,
    /// The load has ended.
    ended: AtomicBool,
}

impl<A> Shared<A> {
    /// With `per_node` connections of each worker to each node.
    pub fn new(access: A, per_node: usize) -> Self {
        Self {
            access,
            per_node,
            joined: Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    pub fn joined(&self) -> MutexGuard<'_, HashSet<String>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Tries a connection until it stands, then hands it to the worker; ends early with the load. At once the first time, if it
/// was never lost.
pub(crate) fn establish<P: Pipelined>(
    contact: &str,
    number: usize,
    lost: bool,
    worker: &MailSender<Message<P::Peer>>,
    shared: &Shared<P::Access>,
) {
    let mut backoff = Backoff::new();
    let mut wait = lost;
    while !shared.has_ended() {
        if std::mem::replace(&mut wait, true) {
            backoff.wait();
        }
        // A node that is not back yet refuses in many ways; all of them mean: try again.
        if let Ok((pipe, peer)) = P::open(&shared.access, contact) {
            return worker.send(Message::Up { number, pipe, peer });
        }
    }
}
