//! The wall clock as its distance from the time since the boot, which nothing sets.

use std::io;

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde::{Deserialize, Serialize};

const NANOSECONDS: i64 = 1_000_000_000;
const READINGS: u32 = 5;
/// Nanoseconds.
const CLOSE: u64 = 1_000_000;

/// How far the wall clock is ahead of the time since the boot, which nothing sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ahead {
    nanoseconds: i64,
}

impl Ahead {
    /// By the reading that took least, as this program may have to wait in the middle of one.
    pub(super) fn now() -> Self {
        let reading = || {
            let before = nanoseconds(clock_gettime(ClockId::Boottime));
            let wall = nanoseconds(clock_gettime(ClockId::Realtime));
            let took = nanoseconds(clock_gettime(ClockId::Boottime)) - before;
            (took, wall - before - took / 2)
        };
        let (_, nanoseconds) = (0..READINGS).map(|_| reading()).min().unwrap_or_default();
        Self { nanoseconds }
    }

    /// Sets the wall clock, again if this program had to wait meanwhile. Errors: no right to, and a time before 1970.
    pub(super) fn set(self) -> io::Result<()> {
        for _ in 0..READINGS {
            let wall = nanoseconds(clock_gettime(ClockId::Boottime)).saturating_add(self.nanoseconds);
            let time = Timespec {
                tv_sec: wall.div_euclid(NANOSECONDS),
                tv_nsec: wall.rem_euclid(NANOSECONDS),
            };
            clock_settime(ClockId::Realtime, time)?;
            if Self::now().nanoseconds.abs_diff(self.nanoseconds) < CLOSE {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn by(self, offset_s: f64) -> Self {
        #[allow(clippy::cast_possible_truncation)] // a day is 9e13 ns
        let offset = (offset_s * 1e9) as i64;
        Self {
            nanoseconds: self.nanoseconds.saturating_add(offset),
        }
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(NANOSECONDS).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ahead_is_the_wall_clock_again() {
        let right = Ahead::now();
        assert!(right.nanoseconds > 0, "this machine was booted after 1970");
        assert_eq!(right.by(-1.5).by(1.5), right);
        assert_eq!(right.by(0.25).nanoseconds - right.nanoseconds, NANOSECONDS / 4);
        let later = Ahead::now();
        assert!(
            (later.nanoseconds - right.nanoseconds).abs() < NANOSECONDS,
            "{later:?} {right:?}"
        );
    }
}
