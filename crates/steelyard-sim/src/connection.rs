//! A client's connection: bytes read but not decoded yet, and bytes that the kernel has not taken yet.

use std::io::ErrorKind;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll::EventFlags;
use steelyard_channel::{Channel, Pipe};

use crate::node::Session;

const OUTPUT_BYTES: usize = 64 * 1024;
/// Room that is made for a request that is only announced; more is made as it comes.
const MOST_EXPECTED_BYTES: usize = 1 << 20;
/// A client that does not take its answers is cut off when so much waits for it.
const MOST_WAITING_BYTES: usize = 256 << 20;

pub struct Connection {
    pipe: Pipe,
    pub session: Session,
    /// Whether it has asked for an operation: load, not administration.
    pub operated: bool,
    input: Vec<u8>,
    pub output: Vec<u8>,
    blocked: bool,
    watches_output: bool,
    closed: bool,
}

impl Connection {
    pub fn new(channel: Channel, session: Session) -> Self {
        Self {
            pipe: Pipe::new(channel),
            session,
            operated: false,
            input: Vec::new(),
            output: Vec::with_capacity(OUTPUT_BYTES),
            blocked: false,
            watches_output: false,
            closed: false,
        }
    }

    /// Read once. False if the client has gone.
    pub fn fill(&mut self) -> bool {
        match self.pipe.receive(&mut self.input) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.closed = true,
        }
        !self.closed
    }

    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// Session, a piece of the input, and where answers go.
    pub fn parts(&mut self, piece: Range<usize>) -> (&mut Session, &[u8], &mut Vec<u8>) {
        (&mut self.session, &self.input[piece], &mut self.output)
    }

    /// A request of this many bytes is on its way.
    pub fn expect(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.input.len());
        self.input.reserve(missing.min(MOST_EXPECTED_BYTES));
    }

    /// The first `bytes` of the input are done with.
    pub fn consume(&mut self, bytes: usize) {
        let left = self.input.len() - bytes;
        self.input.copy_within(bytes.., 0);
        self.input.truncate(left);
    }

    /// What STARTUP agreed on holds from the next answer on.
    pub fn agree(&mut self) {
        if let Some(kind) = self.session.agreed.take() {
            // What is half sent belongs to the time before; a client that lets it wait is cut off.
            if self.flush() && !self.blocked {
                self.pipe.compress(kind);
            } else {
                self.closed = true;
            }
        }
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Send as much as the client takes. False if the connection has ended.
    pub fn flush(&mut self) -> bool {
        if !self.closed {
            match self.pipe.send(&mut self.output) {
                Ok(blocked) => self.blocked = blocked,
                Err(_) => self.closed = true,
            }
        }
        !self.closed && self.pipe.waiting(&self.output) <= MOST_WAITING_BYTES
    }

    /// What epoll should watch from now on, if that changed. A client that is slow to take is not read from meanwhile.
    pub fn change_of_interest(&mut self) -> Option<EventFlags> {
        if self.blocked == self.watches_output {
            return None;
        }
        self.watches_output = self.blocked;
        Some(if self.blocked { EventFlags::OUT } else { EventFlags::IN })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
