//! Rate shapes: how many operations are due by when (the integral of a rate), and the inverse, when the n-th is due.
//!
//! With r(t) the rate and N(t) its integral from 0, operation n is due at the last instant t with N(t) <= n, so that a stretch
//! without any rate holds no operation.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use steelyard_wire::Schedule;

use steelyard_workload::OrderError;

/// Steps of Newton's method at most; bisection, where it falls back on that, needs 52 of them.
const MAX_ITERATIONS: usize = 80;
/// Radians within which the inverse of a sine is found: a millionth of a nanosecond for a period of a minute.
const PRECISION: f64 = 1e-15;

/// Least and most of rates and of lengths: beyond them sums and quotients overflow, and operations that all were due at once would
/// never have been counted.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e8;

/// A rate as a function of time, in seconds and operations a second.
#[derive(Clone, Debug)]
pub enum Shape {
    /// r(t) = rate
    Constant {
        /// Operations a second.
        rate: f64,
    },
    /// r(t) = from + (to - from) t / length up to `length`, then `to`.
    Ramp {
        /// Operations a second at the beginning.
        from: f64,
        /// Operations a second at the end.
        to: f64,
        /// Seconds of the change.
        length: f64,
    },
    /// `starts[k]` operations are due before step k.
    Steps {
        /// Operations a second of each step.
        rates: Arc<[f64]>,
        /// Operations due before each step.
        starts: Arc<[f64]>,
        /// Seconds of each step.
        length: f64,
    },
    /// r(t) = mean + amplitude sin(2 pi t / period)
    Sine {
        /// Operations a second in the mean.
        mean: f64,
        /// Operations a second.
        amplitude: f64,
        /// Seconds.
        period: f64,
    },
}

impl Shape {
    /// The shape of an order's schedule; None for a closed loop and a trace, which have none.
    ///
    /// Errors: rates that are negative or never above 0, lengths that are not above 0, an amplitude above the mean.
    pub fn new(schedule: &Schedule) -> Result<Option<Self>, OrderError> {
        Ok(Some(match *schedule {
            Schedule::Closed { .. } | Schedule::Trace { .. } => return Ok(None),
            Schedule::Constant { rate_per_s, .. } | Schedule::Poisson { rate_per_s, .. } => {
                let rate = above_zero("schedule.rate_per_s", rate_per_s)?;
                Self::Constant { rate }
            }
            Schedule::Ramp {
                from_per_s,
                to_per_s,
                ramp_s,
                ..
            } => {
                let from = not_negative("schedule.from_per_s", from_per_s)?;
                let to = not_negative("schedule.to_per_s", to_per_s)?;
                if from + to == 0.0 {
                    return Err(OrderError::new(
                        "schedule.to_per_s",
                        to,
                        "above 0, or from_per_s above 0",
                    ));
                }
                let length = above_zero("schedule.ramp_s", ramp_s)?;
                Self::Ramp { from, to, length }
            }
            Schedule::Steps {
                ref rates_per_s,
                step_s,
                ..
            } => steps(rates_per_s, step_s)?,
            Schedule::Sine {
                mean_per_s,
                amplitude_per_s,
                period_s,
                ..
            } => {
                let mean = above_zero("schedule.mean_per_s", mean_per_s)?;
                let amplitude = not_negative("schedule.amplitude_per_s", amplitude_per_s)?;
                if amplitude > mean {
                    let allowed = "at most mean_per_s, because rates cannot be below 0";
                    return Err(OrderError::new("schedule.amplitude_per_s", amplitude, allowed));
                }
                let period = above_zero("schedule.period_s", period_s)?;
                Self::Sine {
                    mean,
                    amplitude,
                    period,
                }
            }
        }))
    }

    /// N(t): operations, and part of one, that are due within the first `t` seconds.
    pub fn count(&self, t: f64) -> f64 {
        match self {
            Self::Constant { rate } => rate * t,
            Self::Ramp { from, to, length } => {
                let ramping = t.min(*length);
                // The integral of a straight line: its mean height times its length.
                (from + (to - from) * ramping / length / 2.0) * ramping + to * (t - ramping)
            }
            Self::Steps { rates, starts, length } => {
                let step = ((t / length) as usize).min(rates.len() - 1);
                starts[step] + rates[step] * (t - step as f64 * length)
            }
            Self::Sine {
                mean,
                amplitude,
                period,
            } => mean * t + amplitude * period / TAU * (1.0 - (TAU * t / period).cos()),
        }
    }

    /// The last t with N(t) <= n, in nanoseconds; None if that never ends.
    pub fn time_ns(&self, n: f64) -> Option<f64> {
        let seconds = match self {
            // f64 is exact to a nanosecond for the first 104 days.
            Self::Constant { rate } => return Some(n * (1e9 / rate)),
            Self::Ramp { from, to, length } => ramp_time(*from, *to, *length, n)?,
            Self::Steps { rates, starts, length } => {
                let step = starts.partition_point(|start| *start <= n) - 1;
                if rates[step] == 0.0 {
                    return None;
                }
                step as f64 * length + (n - starts[step]) / rates[step]
            }
            Self::Sine {
                mean,
                amplitude,
                period,
            } => {
                // Every period has the mean's operations.
                let a_period = mean * period;
                let whole = (n / a_period).floor();
                let rest = TAU * (n - whole * a_period) / a_period;
                (whole + sine_angle(amplitude / mean, rest) / TAU) * period
            }
        };
        Some(seconds * 1e9)
    }
}

fn steps(rates: &[f64], step_s: f64) -> Result<Shape, OrderError> {
    let length = above_zero("schedule.step_s", step_s)?;
    for rate in rates {
        not_negative("schedule.rates_per_s", *rate)?;
    }
    if !rates.iter().any(|rate| *rate > 0.0) {
        let read = format!("{rates:?}");
        return Err(OrderError::new(
            "schedule.rates_per_s",
            read,
            "rates of which at least one is above 0",
        ));
    }
    let starts = rates.iter().scan(0.0, |sum, rate| {
        let start = *sum;
        *sum += rate * length;
        Some(start)
    });
    Ok(Shape::Steps {
        starts: starts.collect(),
        rates: rates.into(),
        length,
    })
}

/// n = from t + k t^2 / 2 with k = (to - from) / length, solved for t in the form that does not subtract nearly equal numbers:
/// t = 2 n / (from + sqrt(from^2 + 2 k n)) (Press et al., Numerical Recipes, 3rd ed., 2007, section 5.6).
fn ramp_time(from: f64, to: f64, length: f64, n: f64) -> Option<f64> {
    let whole = (from + to) / 2.0 * length;
    if n >= whole {
        return (to > 0.0).then(|| length + (n - whole) / to);
    }
    if n == 0.0 {
        return Some(0.0);
    }
    let root = (from * from + 2.0 * (to - from) / length * n).max(0.0).sqrt();
    Some((2.0 * n / (from + root)).min(length))
}

/// The angle a in [0, 2 pi) with a + e (1 - cos a) = m, for e in [0, 1] and m in [0, 2 pi). With E = a + pi/2 this is Kepler's
/// equation, E - e sin E = m - e + pi/2, which has no closed solution: Newton's method, held between bounds that close in
/// (rtsafe: Press et al., Numerical Recipes, 3rd ed., 2007, section 9.4).
fn sine_angle(e: f64, m: f64) -> f64 {
    let (mut low, mut high) = ((m - 2.0 * e).max(0.0), m);
    let mut angle = if m < PI {
        low + (high - low) / (1.0 + e)
    } else {
        (low + high) / 2.0
    };
    for _ in 0..MAX_ITERATIONS {
        let (sine, cosine) = angle.sin_cos();
        let over = angle + e * (1.0 - cosine) - m;
        if over > 0.0 {
            high = angle;
        } else {
            low = angle;
        }
        let newton = angle - over / (1.0 + e * sine);
        let next = if newton >= low && newton <= high {
            newton
        } else {
            (low + high) / 2.0
        };
        if (next - angle).abs() <= PRECISION * TAU {
            return next;
        }
        angle = next;
    }
    angle
}

fn above_zero(field: &'static str, read: f64) -> Result<f64, OrderError> {
    if (LEAST..=MOST).contains(&read) {
        return Ok(read);
    }
    Err(OrderError::new(field, read, "above 0 (1e-9), up to 100 million"))
}

fn not_negative(field: &'static str, read: f64) -> Result<f64, OrderError> {
    if (0.0..=MOST).contains(&read) {
        return Ok(read);
    }
    Err(OrderError::new(field, read, "0 to 100 million"))
}
