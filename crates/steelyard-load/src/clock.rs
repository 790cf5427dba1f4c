//! Clocks: the monotonic clock of the load with its offset to wall time, and CPU time of threads and of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

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
        Self::start_with_offset(0.0)
    }

    /// The same, with a wall clock that is wrong by so many seconds, as on a node whose clock nobody sets.
    pub fn start_with_offset(offset_s: f64) -> Self {
        let origin_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        Self {
            source: Source::Monotonic(Instant::now()),
            origin_s: origin_s + offset_s,
        }
    }

    /// A clock that shows `hand`, which its holder moves: loops can be tested without waiting.
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

/// CPU time, user and system, that the calling thread or this process has used; `clock` says which.
pub(crate) fn cpu_time(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}
