//! Schedules of an order: when operations are due. `steelyard_load::schedule` has the arithmetic.

use serde::{Deserialize, Serialize};

/// Default limit of operations of one process that are due and not yet sent: about 10 s at 100,000/s.
pub const DEFAULT_BACKLOG_LIMIT: u64 = 1_000_000;

/// When operations are due. Rates are over all shares; `threads` and `in_flight` are this process's: at most this many are
/// unanswered at once, the others wait and are sent late, never skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Each of `threads` sends its next operation when the previous one is answered.
    Closed {
        /// Operations in flight.
        threads: u32,
    },
    /// Evenly spaced.
    Constant {
        /// Operations per second.
        rate_per_s: f64,
        /// Maximum number of operations in flight.
        in_flight: u32,
    },
    /// Exponential gaps with mean 1 / `rate_per_s`.
    Poisson {
        /// Mean number of operations per second.
        rate_per_s: f64,
        /// Maximum number of operations in flight.
        in_flight: u32,
    },
    /// A rate that changes linearly from one value to another within `ramp_s`, and stays there.
    Ramp {
        /// Operations per second at the beginning.
        from_per_s: f64,
        /// Operations per second at the end.
        to_per_s: f64,
        /// Seconds of the change.
        ramp_s: f64,
        /// Maximum number of operations in flight.
        in_flight: u32,
        /// Distribution of operations.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Each rate for `step_s`, in order; the last one stays.
    Steps {
        /// Operations per second in each step.
        rates_per_s: Vec<f64>,
        /// Seconds per step.
        step_s: f64,
        /// Maximum number of operations in flight.
        in_flight: u32,
        /// Distribution of operations.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// `mean_per_s` + `amplitude_per_s` x sin(2 pi t / `period_s`).
    Sine {
        /// Mean rate, operations per second.
        mean_per_s: f64,
        /// Amplitude, operations per second; at most the mean.
        amplitude_per_s: f64,
        /// Seconds per period.
        period_s: f64,
        /// Maximum number of operations in flight.
        in_flight: u32,
        /// Distribution of operations.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Timestamps in a file: seconds, one per line, in ascending order. They count from the first one, `speed` times as
    /// fast.
    Trace {
        /// Path of the file on the machine that drives the load.
        file: String,
        /// Speed-up; 1 keeps the original intervals.
        #[serde(default = "as_it_was")]
        speed: f64,
        /// Maximum number of operations in flight.
        in_flight: u32,
    },
}

impl Schedule {
    /// Operations that this process may have in flight, and the field that says so.
    pub fn in_flight(&self) -> (&'static str, u32) {
        match self {
            Self::Closed { threads } => ("schedule.threads", *threads),
            Self::Constant { in_flight, .. }
            | Self::Poisson { in_flight, .. }
            | Self::Ramp { in_flight, .. }
            | Self::Steps { in_flight, .. }
            | Self::Sine { in_flight, .. }
            | Self::Trace { in_flight, .. } => ("schedule.in_flight", *in_flight),
        }
    }
}

/// Distribution of operations under a changing rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// One whenever the integrated rate reaches the next whole number.
    #[default]
    Even,
    /// Independent of each other: a Poisson process with that rate.
    Poisson,
}

/// One of several measured phases that follow each other without a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPhase {
    /// Its name in records; not `populate` or `warm-up`.
    pub name: String,
    /// When its operations are due.
    pub schedule: Schedule,
    /// Seconds.
    pub duration_s: f64,
}

/// For fields of an order.
pub(crate) fn default_backlog_limit() -> u64 {
    DEFAULT_BACKLOG_LIMIT
}

fn as_it_was() -> f64 {
    1.0
}
