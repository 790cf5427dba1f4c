//! Lines: a load's non-blocking connection to a server: its bytes, and how long it has been silent. It knows neither the
//! protocol nor operations. Times are nanoseconds of one monotonic clock.

use std::io;
use std::os::fd::AsFd;

use rustix::event::epoll;

use crate::Pipe;

/// Answers that are overdue; beyond this the connection counts as lost and is established again.
const MAX_OVERDUE: usize = 8_192;

/// How long a connection may say nothing at all while an operation on it has timed out. A machine that lost its power, or a
/// firewall, ends no connection; the operations sent there would all be lost.
pub const SILENCE_NS: u64 = 5_000_000_000;

/// What is watched for always: bytes, and their end.
const COMING: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP);

/// A connection to a server, up or lost.
#[derive(Default)]
pub struct Line {
    pipe: Option<Pipe>,
    /// Whether it was ever established.
    was_up: bool,
    /// Whether it leads to a node that has joined, and nothing was sent there yet.
    pub is_new: bool,
    /// Requests that are still to be sent.
    pub out: Vec<u8>,
    wants_write: bool,
    input: Vec<u8>,
    overdue: usize,
    /// When something was read last.
    heard_ns: u64,
    /// When the first operation was sent that has timed out while nothing at all was read.
    silent_since_ns: Option<u64>,
}

impl Line {
    /// Takes a connection over which nothing is outstanding; `number` marks its events. Whether it is one that was lost.
    ///
    /// # Errors
    ///
    /// What the kernel says, such as too many watched files.
    pub fn attach(&mut self, pipe: Pipe, epoll: impl AsFd, number: u64) -> io::Result<bool> {
        self.attach_with(pipe, epoll, number, COMING)
    }

    /// As `attach`, of a connection that is still being made, and over which nothing is to be said at once: an event says that it
    /// can be written to when it stands.
    ///
    /// # Errors
    ///
    /// As `attach`.
    pub fn attach_unconnected(&mut self, pipe: Pipe, epoll: impl AsFd, number: u64) -> io::Result<bool> {
        self.wants_write = true;
        self.attach_with(pipe, epoll, number, COMING | epoll::EventFlags::OUT)
    }

    fn attach_with(&mut self, pipe: Pipe, epoll: impl AsFd, number: u64, flags: epoll::EventFlags) -> io::Result<bool> {
        epoll::add(epoll, &pipe, epoll::EventData::new_u64(number), flags)?;
        self.pipe = Some(pipe);
        Ok(std::mem::replace(&mut self.was_up, true))
    }

    /// Whether it is established.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.pipe.is_some()
    }

    /// An operation sent at `sent` was given up: its answer is dropped when it comes.
    pub fn give_up(&mut self, sent: Option<u64>) {
        self.overdue += 1;
        if self.silent_since_ns.is_none() {
            self.silent_since_ns = sent.filter(|sent| *sent > self.heard_ns);
        }
    }

    /// The answer to an operation that was given up has come.
    #[inline]
    pub fn drop_answer(&mut self) {
        self.overdue -= 1;
    }

    /// Something was read.
    #[inline]
    pub fn hear(&mut self, now_ns: u64) {
        (self.heard_ns, self.silent_since_ns) = (now_ns, None);
    }

    /// Whether an operation has timed out and nothing was heard for `SILENCE_NS`.
    #[inline]
    pub fn is_silent(&self, now_ns: impl FnOnce() -> u64) -> bool {
        self.silent_since_ns.is_some_and(|since| now_ns() >= since + SILENCE_NS)
    }

    /// Whether there is something to write, or enough answers are overdue to give the connection up.
    #[inline]
    pub fn wants_flush(&self) -> bool {
        !self.out.is_empty() || self.overdue > MAX_OVERDUE
    }

    /// Gives the kernel what it takes.
    ///
    /// # Errors
    ///
    /// The connection is lost, or too many answers are overdue.
    pub fn flush(&mut self, epoll: impl AsFd, number: u64) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        if self.overdue > MAX_OVERDUE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let blocked = pipe.send(&mut self.out)?;
        if blocked != self.wants_write {
            let flags = if blocked {
                COMING | epoll::EventFlags::OUT
            } else {
                COMING
            };
            epoll::modify(epoll, pipe.as_fd(), epoll::EventData::new_u64(number), flags)?;
            self.wants_write = blocked;
        }
        Ok(())
    }

    /// One read. `Ok(true)`: more may be there.
    ///
    /// # Errors
    ///
    /// The connection is lost, or was closed by the server.
    pub fn read(&mut self) -> io::Result<bool> {
        match &mut self.pipe {
            Some(pipe) => pipe.receive(&mut self.input),
            None => Ok(false),
        }
    }

    /// Hands out what has come, so that answers can be taken from it while the connection changes; `give_back` ends it.
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

    /// Forgets the connection.
    pub fn lose(&mut self) {
        self.pipe = None;
        self.out.clear();
        self.input.clear();
        (self.overdue, self.wants_write, self.silent_since_ns) = (0, false, None);
    }
}
