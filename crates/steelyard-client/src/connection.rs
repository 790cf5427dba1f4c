//! A non-blocking connection to a node: its bytes, its streams, and which answers are still due. It knows neither operations
//! nor time.

use std::collections::VecDeque;
use std::io;

use rustix::event::epoll;
use rustix::fd::AsFd;
use steelyard_channel::Pipe;
use steelyard_cql::{Frame, Header, MAX_BODY_BYTES};
use steelyard_load::clock::{Clock, Nanos};

/// Streams of one connection in the protocol: 15 bits.
const MAX_STREAMS: usize = 32_768;
/// Streams whose answer is overdue; beyond this the connection counts as lost and is established again.
const MAX_ORPHANS: usize = 8_192;

/// How long a connection may say nothing at all while an operation on it has timed out. A machine that lost its power, or a
/// firewall, ends no connection; the operations sent there would all be lost.
pub(crate) const SILENCE_NS: Nanos = 5_000_000_000;

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
pub(crate) struct Connection {
    pipe: Option<Pipe>,
    /// Whether it was ever established.
    was_up: bool,
    /// Whether it leads to a node that has joined, and nothing was sent there yet.
    pub is_new: bool,
    /// Identifiers of the prepared statements at this node.
    pub ids: Vec<Vec<u8>>,
    /// Requests that are still to be sent.
    pub out: Vec<u8>,
    wants_write: bool,
    input: Vec<u8>,
    owners: Vec<StreamOwner>,
    free: Vec<u16>,
    orphans: usize,
    /// When something was read last.
    heard: Nanos,
    /// When the first operation was sent that has timed out while nothing at all was read.
    silent_since: Option<Nanos>,
    /// Statement and slot of operations that wait until the statement is prepared again.
    pub waiting: VecDeque<(usize, u32)>,
}

impl Connection {
    pub fn new() -> Self {
        Self {
            pipe: None,
            was_up: false,
            is_new: false,
            ids: Vec::new(),
            out: Vec::new(),
            wants_write: false,
            input: Vec::new(),
            owners: Vec::new(),
            free: Vec::new(),
            orphans: 0,
            heard: 0,
            silent_since: None,
            waiting: VecDeque::new(),
        }
    }

    /// Takes a connection over which nothing is outstanding. Whether it is one that was lost.
    pub fn attach(&mut self, pipe: Pipe, ids: Vec<Vec<u8>>, epoll: impl AsFd, number: u64) -> io::Result<bool> {
        epoll::add(epoll, &pipe, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
        self.pipe = Some(pipe);
        self.ids = ids;
        Ok(std::mem::replace(&mut self.was_up, true))
    }

    #[inline]
    pub fn is_up(&self) -> bool {
        self.pipe.is_some()
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
        self.orphans -= usize::from(owner == StreamOwner::Orphan);
        owner
    }

    /// The operation of a stream, sent at `sent`, was given up: its answer is dropped when it comes.
    pub fn orphan(&mut self, stream: u16, sent: Option<Nanos>) {
        self.owners[usize::from(stream)] = StreamOwner::Orphan;
        self.orphans += 1;
        if self.silent_since.is_none() {
            self.silent_since = sent.filter(|sent| *sent > self.heard);
        }
    }

    /// Something was read.
    #[inline]
    pub fn hear(&mut self, now: Nanos) {
        (self.heard, self.silent_since) = (now, None);
    }

    /// Whether an operation has timed out and nothing was heard for `SILENCE_NS`.
    #[inline]
    pub fn is_silent(&self, clock: &Clock) -> bool {
        self.silent_since.is_some_and(|since| clock.now() >= since + SILENCE_NS)
    }

    pub fn is_preparing(&self, statement: usize) -> bool {
        self.owners.contains(&StreamOwner::Prepare(statement))
    }

    /// Whether there is something to write, or enough answers are overdue to give the connection up.
    #[inline]
    pub fn wants_flush(&self) -> bool {
        !self.out.is_empty() || self.orphans > MAX_ORPHANS
    }

    /// Gives the kernel what it takes. Errors: the connection is lost, or too many answers are overdue.
    pub fn flush(&mut self, epoll: impl AsFd, number: u64) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        if self.orphans > MAX_ORPHANS {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let blocked = pipe.send(&mut self.out)?;
        if blocked != self.wants_write {
            let flags = if blocked {
                epoll::EventFlags::IN | epoll::EventFlags::OUT
            } else {
                epoll::EventFlags::IN
            };
            epoll::modify(epoll, pipe.as_fd(), epoll::EventData::new_u64(number), flags)?;
            self.wants_write = blocked;
        }
        Ok(())
    }

    /// One read. `Ok(true)`: more may be there. Errors: the connection is lost, or was closed by the server.
    pub fn read(&mut self) -> io::Result<bool> {
        match &mut self.pipe {
            Some(pipe) => pipe.receive(&mut self.input),
            None => Ok(false),
        }
    }

    /// Hands out what has come, so that frames can be taken from it while the node changes; `give_back` ends it.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Keeps what `take_input` gave from byte `used` on.
    pub fn give_back(&mut self, mut input: Vec<u8>, used: usize) {
        if used == input.len() {
            input.clear();
        } else {
            input.copy_within(used.., 0);
            input.truncate(input.len() - used);
        }
        self.input = input;
    }

    /// Forgets the connection; slots that waited for an answer or for a statement are appended to `orphaned`.
    pub fn lose(&mut self, orphaned: &mut Vec<u32>) {
        self.pipe = None;
        let slots = self.owners.drain(..).filter_map(|owner| match owner {
            StreamOwner::Slot(slot) => Some(slot),
            _ => None,
        });
        orphaned.extend(slots);
        orphaned.extend(self.waiting.drain(..).map(|(_, slot)| slot));
        self.free.clear();
        self.out.clear();
        self.input.clear();
        (self.orphans, self.wants_write, self.silent_since) = (0, false, None);
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
