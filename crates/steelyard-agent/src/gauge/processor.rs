//! Processor time that a node gets with a thread on every core, and how much one core does with it.
//!
//! A quota gives time in periods, at their beginning: a window that cuts one is wrong by up to a whole quota. So the window begins and
//! ends where this process goes on after a pause, which is where a period begins.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::sched_getaffinity;
use rustix::time::{ClockId, clock_gettime};

/// A pause as a quota makes it; the kernel's own switches between processes of equal rank are about as long at most.
const PAUSE: Duration = Duration::from_millis(3);
/// How long a pause is waited for: two periods and a half.
const LOOK: Duration = Duration::from_millis(250);
const MOST_THREADS: u32 = 256;
const TABLE: usize = 4096;
/// Rounds between two looks at the clock, some 30 microseconds.
const ROUNDS: u32 = 10_000;
const ROUNDS_PER_UNIT: f64 = 1e6;

pub struct Processor {
    /// Seconds of processor time per second.
    pub cpus: f64,
    pub threads: u32,
    /// Million rounds that one core did per second of processor time: its speed, whatever the quota is.
    pub work_per_cpu_s: f64,
}

/// Measures for `window`, and up to twice LOOK longer.
pub fn measure(window: Duration) -> Processor {
    // Not available_parallelism(), which has the quota in it that is to be measured.
    let threads = sched_getaffinity(None)
        .map_or(1, |cores| cores.count())
        .clamp(1, MOST_THREADS);
    let ended = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (1..threads)
        .map(|seed| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || {
                let mut work = Work::new(u64::from(seed));
                while !ended.load(Ordering::Relaxed) {
                    work.chunk();
                }
            })
        })
        .collect();
    let (cpus, work_per_cpu_s) = lead(window);
    ended.store(true, Ordering::Relaxed);
    for other in others {
        // A thread that panicked has no more to say.
        let _ = other.join();
    }
    Processor {
        cpus,
        threads,
        work_per_cpu_s,
    }
}

fn lead(window: Duration) -> (f64, f64) {
    let mut work = Work::new(u64::from(MOST_THREADS) + 1);
    let begun = Instant::now();
    let own_begun_s = cpu_s(ClockId::ThreadCPUTime);
    let mut chunks = 0_u32;
    let mut last = begun;
    let mut from: Option<(Instant, f64)> = None;
    loop {
        work.chunk();
        chunks += 1;
        let now = Instant::now();
        let paused = now.duration_since(last) >= PAUSE;
        last = now;
        match from {
            None if paused || now.duration_since(begun) >= LOOK => from = Some((now, cpu_s(ClockId::ProcessCPUTime))),
            Some((since, used_s)) => {
                let lasted = now.duration_since(since);
                if lasted >= window && (paused || lasted >= window + LOOK) {
                    let own_s = cpu_s(ClockId::ThreadCPUTime) - own_begun_s;
                    let cpus = (cpu_s(ClockId::ProcessCPUTime) - used_s) / lasted.as_secs_f64();
                    return (cpus, f64::from(chunks) * f64::from(ROUNDS) / ROUNDS_PER_UNIT / own_s);
                }
            }
            None => {}
        }
    }
}

fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
    .as_secs_f64()
}

/// Integer arithmetic, branches and reads of a table that fits into a core's first cache.
struct Work {
    state: u64,
    table: Vec<u64>,
}

impl Work {
    fn new(seed: u64) -> Self {
        let mut work = Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            table: vec![0; TABLE],
        };
        for place in 0..TABLE {
            work.table[place] = work.next();
        }
        work
    }

    /// Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003.
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn chunk(&mut self) {
        let mut sum = 0_u64;
        for _ in 0..ROUNDS {
            let place = usize::try_from(self.next() % TABLE as u64).unwrap_or(0);
            let value = self.table[place];
            sum = if value & 1 == 0 {
                sum.wrapping_add(value)
            } else {
                sum ^ value.rotate_left(7)
            };
            self.table[place] = value.wrapping_add(sum);
        }
        black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_gives_some_time_and_never_more_than_its_cores() {
        let measured = measure(Duration::from_millis(20));
        assert!(measured.cpus > 0.0);
        assert!(measured.cpus < f64::from(measured.threads) * 1.5);
        assert!(measured.work_per_cpu_s > 0.0);
    }
}
