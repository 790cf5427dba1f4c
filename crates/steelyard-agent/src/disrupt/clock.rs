//! `disrupt clock`: this node's clock is set by some seconds. What it was ahead of the time since the boot is known before, and
//! brings it back.

use std::error::Error;
use std::io;

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde::{Deserialize, Serialize};

use super::act::{Act, Held};
use super::record::{Record, Undo, of_this_boot};
use crate::exit::{Exit, REFUSED};
use crate::seconds;

const NANOSECONDS: i64 = 1_000_000_000;
const READINGS: u32 = 5;
/// Nanoseconds.
const CLOSE: u64 = 1_000_000;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub held: Held,
    /// Seconds by which the clock is set forward; less than 0: back.
    #[arg(long, value_name = "S", value_parser = seconds::offset, allow_negative_numbers = true)]
    offset_s: f64,
}

/// How far the wall clock is ahead of the time since the boot, which nothing sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ahead {
    nanoseconds: i64,
}

impl Ahead {
    /// By the reading that took least, as this program may have to wait in the middle of one.
    fn now() -> Self {
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

    fn by(self, offset_s: f64) -> Self {
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

pub(super) struct Clock {
    right: Ahead,
    offset_s: f64,
}

impl Clock {
    /// Errors: no right to set the clock, or one that another disruption has set, so that the right time is not known.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let is_set = |record: &Record| record.undo.iter().any(|undo| matches!(undo, Undo::SetClock { .. }));
        if of_this_boot()?.iter().any(is_set) {
            let what = "disrupt: another disruption has set the clock of this machine".to_owned();
            return Err(Exit::boxed(REFUSED, what));
        }
        let right = Ahead::now();
        right
            .set()
            .map_err(|error| Exit::boxed(REFUSED, format!("disrupt: the clock cannot be set here: {error}")))?;
        Ok(Self {
            right,
            offset_s: arguments.offset_s,
        })
    }
}

impl Act for Clock {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(vec![Undo::SetClock { ahead: self.right }])
    }

    fn begin(&mut self, _: &mut Record) -> Result<(), Box<dyn Error>> {
        let begun = self.right.by(self.offset_s).set();
        begun.map_err(|error| format!("disrupt: cannot set the clock: {error}").into())
    }

    fn end(&mut self, record: &Record) -> io::Result<()> {
        record.undone()
    }
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
