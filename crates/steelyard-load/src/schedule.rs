//! Schedules: when operations are due in an open loop. Pure, except for reading a trace: no clock, no sleeping.

use std::path::Path;
use std::sync::Arc;

use steelyard_wire::{Arrivals, Order, Schedule as Wanted};

use crate::schedule::shape::Shape;
use steelyard_workload::OrderError;
use steelyard_workload::random::{Purpose, Random};

pub mod shape;
pub mod trace;

/// Longest phase: nanoseconds of many of them still fit into 64 bits.
const LONGEST_S: f64 = 1e8;

/// When each operation is due.
pub trait Schedule: Send {
    /// Nanoseconds since the phase's start at which operation `index` of the phase (over all shares, from 0) is due; None if the
    /// phase is over by then. Cheap for indices that do not fall from call to call.
    fn due(&mut self, index: u64) -> Option<u64>;
}

/// Operations by a rate over time.
#[derive(Clone, Debug)]
pub struct Rated {
    shape: Shape,
    points: Points,
    end_ns: u64,
}

/// Where operations lie on the axis of the added-up rate, of which every operation takes 1 in the mean.
#[derive(Clone, Debug)]
enum Points {
    /// At 0, 1, 2 ...
    Even,
    /// The sums of independent exponential gaps of mean 1: a Poisson process of rate 1. Seen through the inverse of the added-up
    /// rate it is a Poisson process of that rate (Cinlar, Introduction to Stochastic Processes, 1975, section 4.7; Lewis and
    /// Shedler, Naval Research Logistics Quarterly 26, 1979).
    Poisson {
        random: Random,
        /// Gaps that are in `sum`.
        counted: u64,
        sum: f64,
    },
}

impl Points {
    fn at(&mut self, index: u64) -> f64 {
        let Self::Poisson { random, counted, sum } = self else {
            return index as f64;
        };
        if index + 1 < *counted {
            (*counted, *sum) = (0, 0.0);
        }
        while *counted <= index {
            // 1 - u is in (0, 1], so the logarithm is finite.
            *sum -= (1.0 - random.at(*counted).unit(0)).ln();
            *counted += 1;
        }
        *sum
    }
}

impl Schedule for Rated {
    fn due(&mut self, index: u64) -> Option<u64> {
        let due = self.shape.time_ns(self.points.at(index))?.round() as u64;
        (due < self.end_ns).then_some(due)
    }
}

/// Operations at the time stamps of a trace; ends with them.
#[derive(Clone, Debug)]
pub struct Trace {
    stamps: Arc<[u64]>,
    end_ns: u64,
}

impl Schedule for Trace {
    fn due(&mut self, index: u64) -> Option<u64> {
        let due = *self.stamps.get(usize::try_from(index).ok()?)?;
        (due < self.end_ns).then_some(due)
    }
}

/// What decides when operations are due.
#[derive(Clone, Debug)]
pub enum Pace {
    /// The answer to the one before.
    Closed,
    /// A rate over time.
    Rated(Rated),
    /// The time stamps of a trace.
    Trace(Trace),
}

impl Pace {
    /// The pace of an order's schedule, ending before `duration_s` if that is given. `seed` decides the gaps of Poisson arrivals.
    ///
    /// Errors: a schedule or a duration that is not possible, a trace that cannot be read.
    pub fn new(schedule: &Wanted, duration_s: Option<f64>, seed: u64) -> Result<Self, OrderError> {
        let end_ns = end_ns(duration_s)?;
        if let Wanted::Trace { file, speed, .. } = schedule {
            let stamps = trace::read(Path::new(file), *speed)?;
            return Ok(Self::Trace(Trace { stamps, end_ns }));
        }
        let Some(shape) = Shape::new(schedule)? else {
            return Ok(Self::Closed);
        };
        let points = match arrivals(schedule) {
            Arrivals::Even => Points::Even,
            Arrivals::Poisson => Points::Poisson {
                random: Random::new(seed, Purpose::Gap),
                counted: 0,
                sum: 0.0,
            },
        };
        Ok(Self::Rated(Rated { shape, points, end_ns }))
    }

    /// Whether it waits for answers.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }

    /// Operations that are due within `duration_s`, in the mean of Poisson arrivals; None for a closed loop.
    pub fn operations(&self, duration_s: f64) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Rated(rated) => Some(rated.shape.count(duration_s)),
            Self::Trace(trace) => Some(trace.stamps.partition_point(|stamp| *stamp < trace.end_ns) as f64),
        }
    }
}

impl Schedule for Pace {
    #[inline]
    fn due(&mut self, index: u64) -> Option<u64> {
        match self {
            Self::Closed => Some(0),
            Self::Rated(rated) => rated.due(index),
            Self::Trace(trace) => trace.due(index),
        }
    }
}

/// Operations that an order asks for in all, over all shares: its own number of them, or those of its open schedules within their
/// duration (in the mean of Poisson arrivals); 0 for a closed loop that ends by time.
pub fn expected_operations(order: &Order) -> f64 {
    // A schedule that is not possible is refused when it is carried out.
    let timed = order.measured_schedules().filter_map(|(schedule, duration_s)| {
        let pace = Pace::new(schedule, duration_s, order.seed).ok()?;
        let whole_trace = matches!(schedule, Wanted::Trace { .. }).then_some(f64::INFINITY);
        pace.operations(duration_s.or(whole_trace)?)
    });
    match order.stop.operations {
        Some(operations) => operations as f64,
        None => timed.sum(),
    }
}

fn arrivals(schedule: &Wanted) -> Arrivals {
    match schedule {
        Wanted::Poisson { .. } => Arrivals::Poisson,
        Wanted::Ramp { arrivals, .. } | Wanted::Steps { arrivals, .. } | Wanted::Sine { arrivals, .. } => *arrivals,
        Wanted::Closed { .. } | Wanted::Constant { .. } | Wanted::Trace { .. } => Arrivals::Even,
    }
}

fn end_ns(duration_s: Option<f64>) -> Result<u64, OrderError> {
    match duration_s {
        None => Ok(u64::MAX),
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST_S => Ok((seconds * 1e9).round() as u64),
        Some(seconds) => Err(OrderError::new(
            "stop.duration_s",
            seconds,
            "above 0, up to 100 million (3 years)",
        )),
    }
}

#[cfg(test)]
mod tests;
