//! One client's connection: bytes read but not yet understood, bytes to be sent but not yet taken.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll::EventFlags;

use crate::node::Session;

const READ_BYTES: usize = 64 * 1024;
/// A client that does not take its answers is cut off when so much waits for it.
const MOST_WAITING_BYTES: usize = 256 << 20;

pub struct Connection {
    stream: TcpStream,
    pub session: Session,
    /// Whether it has asked for an operation: load, not administration.
    pub operated: bool,
    input: Vec<u8>,
    filled: usize,
    pub output: Vec<u8>,
    sent: usize,
    watches_output: bool,
    closed: bool,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            session: Session::default(),
            operated: false,
            input: vec![0; READ_BYTES],
            filled: 0,
            output: Vec::with_capacity(READ_BYTES),
            sent: 0,
            watches_output: false,
            closed: false,
        }
    }

    /// Read once. False if the client has gone.
    pub fn fill(&mut self) -> bool {
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => self.closed = true,
            Ok(count) => self.filled += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.closed = true,
        }
        !self.closed
    }

    pub fn input(&self) -> &[u8] {
        &self.input[..self.filled]
    }

    /// Session, a piece of the input, and where answers go.
    pub fn parts(&mut self, piece: Range<usize>) -> (&mut Session, &[u8], &mut Vec<u8>) {
        (&mut self.session, &self.input[piece], &mut self.output)
    }

    /// A request of so many bytes is on its way.
    pub fn expect(&mut self, bytes: usize) {
        if self.input.len() < bytes {
            self.input.resize(bytes, 0);
        }
    }

    /// The first `bytes` of the input are done with.
    pub fn consume(&mut self, bytes: usize) {
        self.input.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        // Room for the rest of a request that has just begun.
        let room = self.filled + HEADROOM_BYTES;
        self.expect(room);
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Send as much as the client takes. False if the connection has ended.
    pub fn flush(&mut self) -> bool {
        while !self.closed && self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.closed = true,
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        }
        !self.closed && self.output.len() - self.sent <= MOST_WAITING_BYTES
    }

    /// What epoll should watch from now on, if that changed. A client that is slow to take is not read from meanwhile.
    pub fn change_of_interest(&mut self) -> Option<EventFlags> {
        let wants_output = !self.output.is_empty();
        if wants_output == self.watches_output {
            return None;
        }
        self.watches_output = wants_output;
        Some(if wants_output { EventFlags::OUT } else { EventFlags::IN })
    }
}

/// Free bytes that there are always before a read.
const HEADROOM_BYTES: usize = 4096;

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
