//! The seam between the driving loop and a protocol.
//!
//! The loop owns time-outs, schedules and counts; a client owns connections and bytes. A client is used by one thread and
//! never blocks but in `poll`; the loop is generic over it, so nothing is boxed or looked up for an operation.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::operation::Operation;
use crate::texts::Texts;

/// Nanoseconds since the clock's origin.
pub type Nanos = u64;

/// The one clock of a process: monotonic, with the wall clock read once so that both never disagree within a phase.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    origin_s: f64,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Monotonic(Instant),
    Hand(&'static AtomicU64),
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        let origin_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        Self {
            source: Source::Monotonic(Instant::now()),
            origin_s,
        }
    }

    /// A clock that stands at `hand`, moved by whoever holds it: loops can be tested without waiting.
    pub fn by_hand(hand: &'static AtomicU64) -> Self {
        Self {
            source: Source::Hand(hand),
            origin_s: 0.0,
        }
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self.source {
            Source::Monotonic(origin) => origin.elapsed().as_nanos() as Nanos,
            Source::Hand(hand) => hand.load(Ordering::Relaxed),
        }
    }

    /// Seconds since the epoch at that instant.
    pub fn wall_s(&self, at: Nanos) -> f64 {
        self.origin_s + at as f64 / 1e9
    }
}

/// How an operation ended. The order is that of `Outcome::ALL`, so that tallies can be arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Ok,
    /// Answered, but the row that was read is not there.
    NotFound,
    /// No answer within the order's time-out.
    Timeout,
    /// Too few replicas alive, as the server says.
    Unavailable,
    /// The server gave up waiting for replicas.
    ReadTimeout,
    WriteTimeout,
    Overloaded,
    /// The connection was lost while the operation was in flight, or there was none to send it on.
    Connection,
    /// Any other error of the server.
    Server,
    /// Never sent: it became due while the backlog stood at the order's limit.
    Backlog,
    /// Answered, but the row does not hold what was written into it.
    Invalid,
    /// A light-weight transaction whose condition did not hold.
    NotApplied,
}

impl Outcome {
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::NotFound,
        Self::Timeout,
        Self::Unavailable,
        Self::ReadTimeout,
        Self::WriteTimeout,
        Self::Overloaded,
        Self::Connection,
        Self::Server,
        Self::Backlog,
        Self::Invalid,
        Self::NotApplied,
    ];

    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not-found",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::ReadTimeout => "read-timeout",
            Self::WriteTimeout => "write-timeout",
            Self::Overloaded => "overloaded",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Backlog => "backlog",
            Self::Invalid => "invalid",
            Self::NotApplied => "not-applied",
        }
    }

    pub fn is_error(self) -> bool {
        !matches!(self, Self::Ok | Self::NotFound | Self::NotApplied)
    }
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub slot: u32,
    pub outcome: Outcome,
    /// Rows of the answer.
    pub rows: u32,
    /// Read right before the write that sent it; `None` if it was never sent.
    pub sent: Option<Nanos>,
    /// When a connection was there to send it on, if it had to wait for one; else 0. That wait is the system's, not the
    /// generator's.
    pub ready: Nanos,
    /// Read right after the read that brought its answer.
    pub done: Nanos,
}

/// A protocol's side of the loop. A *slot* is a place in flight: the loop gives it at most one operation at a time.
pub trait Client: Send {
    /// Takes one step of an operation for an empty slot; it is sent at the next `poll`.
    fn submit(&mut self, slot: u32, operation: &Operation);

    /// Forgets the operation of a slot: if its answer still comes, it is dropped. Returns when it was sent, if it was.
    fn abandon(&mut self, slot: u32) -> Option<Nanos>;

    /// Sends what was submitted, then waits until something has ended, or until `until` at the latest (it may return
    /// earlier with nothing), and appends what has ended.
    ///
    /// Errors: only where this process itself is at fault; a lost connection is a completion.
    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()>;

    /// Connections that were lost and stand again.
    fn reconnections(&self) -> u64;

    /// Hands over what servers have said of errors since the last time.
    fn texts(&mut self, _into: &mut Texts) {}
}
