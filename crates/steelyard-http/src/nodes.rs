//! Nodes, and the connections that each of them has.

use std::collections::VecDeque;
use std::net::SocketAddr;

use steelyard_channel::Backoff;
use steelyard_load::clock::Nanos;

/// A node with the numbers of those of its connections that have no request.
pub(crate) struct Node {
    pub contact: String,
    pub address: SocketAddr,
    /// What ends the head of each request.
    pub fields: Vec<u8>,
    /// Those that stand; each is used before one is used again.
    pub idle: VecDeque<usize>,
    /// Those that are being made.
    pub rising: Vec<usize>,
    /// Those that are not there.
    pub closed: Vec<usize>,
    /// Set while it takes no connections: when the next is tried.
    pub retry_at: Option<Nanos>,
    pub backoff: Backoff,
}

impl Node {
    pub fn new(contact: String, address: SocketAddr, fields: Vec<u8>) -> Self {
        Self {
            contact,
            address,
            fields,
            idle: VecDeque::new(),
            rising: Vec::new(),
            closed: Vec::new(),
            retry_at: None,
            backoff: Backoff::new(),
        }
    }

    /// Whether it can be sent a request.
    #[inline]
    pub fn is_usable(&self) -> bool {
        self.retry_at.is_none() || !self.idle.is_empty()
    }

    /// A connection for a request: one that stands, else one that is being made, else one that is to be made.
    #[inline]
    pub fn take(&mut self) -> Option<usize> {
        let idle = self.idle.pop_front();
        idle.or_else(|| self.rising.pop()).or_else(|| self.closed.pop())
    }

    /// Takes a connection out of those that have no request.
    pub fn forget(&mut self, number: usize) {
        self.idle.retain(|other| *other != number);
        self.rising.retain(|other| *other != number);
    }
}
