//! Schedules of an order: when operations are due. `steelyard_load::schedule` has the arithmetic.

use serde::{Deserialize, Serialize};

/// Operations that may be due and not yet sent, of one process, where an order does not say: about 10 s of 100,000/s.
pub const DEFAULT_BACKLOG_LIMIT: u64 = 1_000_000;

/// When operations are due. Rates are over all shares; `threads` and `in_flight` are this process's: at most so many are
/// unanswered at once, the rest waits and is sent late, never skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Each of `threads` sends its next operation when the last is answered.
    Closed {
        /// Operations in flight.
        threads: u32,
    },
    /// Evenly spaced.
    Constant {
        /// Operations a second.
        rate_per_s: f64,
        /// Most operations in flight.
        in_flight: u32,
    },
    /// Exponential gaps with mean 1 / `rate_per_s`.
    Poisson {
        /// Operations a second, in the mean.
        rate_per_s: f64,
        /// Most operations in flight.
        in_flight: u32,
    },
    /// A rate that goes in a straight line from one to another within `ramp_s`, and stays there.
    Ramp {
        /// Operations a second at the beginning.
        from_per_s: f64,
        /// Operations a second at the end.
        to_per_s: f64,
        /// Seconds of the change.
        ramp_s: f64,
        /// Most operations in flight.
        in_flight: u32,
        /// How operations lie.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Each rate for `step_s`, in order; the last one stays.
    Steps {
        /// Operations a second of each step.
        rates_per_s: Vec<f64>,
        /// Seconds of each step.
        step_s: f64,
        /// Most operations in flight.
        in_flight: u32,
        /// How operations lie.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// `mean_per_s` + `amplitude_per_s` x sin(2 pi t / `period_s`).
    Sine {
        /// Mean rate, operations a second.
        mean_per_s: f64,
        /// Amplitude, operations a second; at most the mean.
        amplitude_per_s: f64,
        /// Seconds of a period.
        period_s: f64,
        /// Most operations in flight.
        in_flight: u32,
        /// How operations lie.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Time stamps of a file: seconds, one a line, none before the one above it. They count from the first, `speed` times as
    /// fast.
    Trace {
        /// Path of the file on the machine that drives the load.
        file: String,
        /// Speed-up; 1 keeps the time stamps' own distances.
        #[serde(default = "as_it_was")]
        speed: f64,
        /// Most operations in flight.
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

/// How operations lie where the rate changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// One whenever the rate has added up to the next whole number.
    #[default]
    Even,
    /// Independent of each other: a Poisson process of that rate.
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
