//! A non-blocking connection to a node: its streams, and which answers are still due. It knows neither operations nor time.

use std::collections::VecDeque;
use std::io;

use rustix::fd::AsFd;
use steelyard_channel::Pipe;
use steelyard_channel::line::Line;
use steelyard_cql::{Frame, Header, MAX_BODY_BYTES};
use steelyard_load::clock::Nanos;

/// Streams of one connection in the protocol: 15 bits.
const MAX_STREAMS: usize = 32_768;

/// Who waits for a stream's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamOwner {
    Free,
    Slot(u32),
    /// Its operation was given up; the answer is dropped when it comes.
    Orphan,
    /// A statement that is being prepared again.
    Prepare(usize),
}

/// A connection to a node, up or lost.
#[derive(Default)]
pub(crate) struct Connection {
    pub line: Line,
    /// Identifiers of the prepared statements at this node.
    pub ids: Vec<Vec<u8>>,
    owners: Vec<StreamOwner>,
    free: Vec<u16>,
    /// Statement and slot of operations that wait until the statement is prepared again.
    pub waiting: VecDeque<(usize, u32)>,
}

impl Connection {
    /// Takes a connection over which nothing is outstanding. Whether it is one that was lost.
    pub fn attach(&mut self, pipe: Pipe, ids: Vec<Vec<u8>>, epoll: impl AsFd, number: u64) -> io::Result<bool> {
        self.ids = ids;
        self.line.attach(pipe, epoll, number)
    }

    /// Whether another request can be sent.
    #[inline]
    pub fn has_stream(&self) -> bool {
        !self.free.is_empty() || self.owners.len() < MAX_STREAMS
    }

    /// Takes a stream; to be called after `has_stream`.
    #[inline]
    pub fn take_stream(&mut self, owner: StreamOwner) -> u16 {
        match self.free.pop() {
            Some(stream) => {
                self.owners[usize::from(stream)] = owner;
                stream
            }
            None => {
                self.owners.push(owner);
                (self.owners.len() - 1) as u16
            }
        }
    }

    /// Who waited for a stream that has been answered; it is free afterwards.
    #[inline]
    pub fn answered(&mut self, stream: i16) -> StreamOwner {
        let Some(entry) = usize::try_from(stream)
            .ok()
            .and_then(|stream| self.owners.get_mut(stream))
        else {
            return StreamOwner::Free;
        };
        let owner = std::mem::replace(entry, StreamOwner::Free);
        if owner != StreamOwner::Free {
            self.free.push(stream as u16);
        }
        if owner == StreamOwner::Orphan {
            self.line.drop_answer();
        }
        owner
    }

    /// The operation of a stream, sent at `sent`, was given up: its answer is dropped when it comes.
    pub fn orphan(&mut self, stream: u16, sent: Option<Nanos>) {
        self.owners[usize::from(stream)] = StreamOwner::Orphan;
        self.line.give_up(sent);
    }

    pub fn is_preparing(&self, statement: usize) -> bool {
        self.owners.contains(&StreamOwner::Prepare(statement))
    }

    /// Forgets the connection; slots that waited for an answer or for a statement are appended to `orphaned`.
    pub fn lose(&mut self, orphaned: &mut Vec<u32>) {
        self.line.lose();
        let slots = self.owners.drain(..).filter_map(|owner| match owner {
            StreamOwner::Slot(slot) => Some(slot),
            _ => None,
        });
        orphaned.extend(slots);
        orphaned.extend(self.waiting.drain(..).map(|(_, slot)| slot));
        self.free.clear();
    }
}

/// The next whole frame at `at`, with its body's bounds. Errors: bytes that are no response.
#[inline]
pub(crate) fn next_frame(input: &[u8], at: usize) -> io::Result<Option<(Header, usize, usize)>> {
    let rest = &input[at..];
    let header = Frame::header(rest).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let Some(header) = header else { return Ok(None) };
    if !header.response {
        let message = format!("not a response of at most {MAX_BODY_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let end = at + header.frame_length();
    Ok((end <= input.len()).then(|| (header, end - header.body_length as usize, end)))
}
