//! When operations are due in an open loop. Pure: no clock, no sleeping.

use crate::random::{Purpose, Random};
use crate::ycsb::LoadError;

/// When each operation is due.
pub trait Schedule: Send {
    /// Nanoseconds since the phase's start at which operation `index` of the phase (over all shares, from 0) is due; None if the
    /// phase is over by then. Cheap for indices that do not fall from call to call.
    fn due(&mut self, index: u64) -> Option<u64>;
}

/// Evenly spaced operations.
#[derive(Clone, Debug)]
pub struct Constant {
    gap_ns: f64,
    end_ns: u64,
}

impl Constant {
    /// `rate_per_s` operations a second over all shares, ending before `duration_s` if that is given.
    pub fn new(rate_per_s: f64, duration_s: Option<f64>) -> Result<Self, LoadError> {
        Ok(Self {
            gap_ns: gap_ns(rate_per_s)?,
            end_ns: end_ns(duration_s)?,
        })
    }
}

impl Schedule for Constant {
    fn due(&mut self, index: u64) -> Option<u64> {
        // f64 is exact to a nanosecond for the first 104 days.
        let due = (index as f64 * self.gap_ns).round() as u64;
        (due < self.end_ns).then_some(due)
    }
}

/// Operations with independent, exponentially distributed gaps; the first one comes after a gap.
#[derive(Clone, Debug)]
pub struct Poisson {
    random: Random,
    gap_ns: f64,
    end_ns: u64,
    /// Gaps that are in `sum_ns`.
    counted: u64,
    sum_ns: f64,
}

impl Poisson {
    /// `rate_per_s` operations a second in the mean over all shares, ending before `duration_s` if that is given.
    pub fn new(rate_per_s: f64, duration_s: Option<f64>, seed: u64) -> Result<Self, LoadError> {
        Ok(Self {
            random: Random::new(seed, Purpose::Gap),
            gap_ns: gap_ns(rate_per_s)?,
            end_ns: end_ns(duration_s)?,
            counted: 0,
            sum_ns: 0.0,
        })
    }
}

impl Schedule for Poisson {
    fn due(&mut self, index: u64) -> Option<u64> {
        if index + 1 < self.counted {
            self.counted = 0;
            self.sum_ns = 0.0;
        }
        while self.counted <= index {
            // 1 - u is in (0, 1], so the logarithm is finite.
            self.sum_ns -= (1.0 - self.random.at(self.counted).unit(0)).ln() * self.gap_ns;
            self.counted += 1;
        }
        let due = self.sum_ns.round() as u64;
        (due < self.end_ns).then_some(due)
    }
}

fn gap_ns(rate_per_s: f64) -> Result<f64, LoadError> {
    let gap = 1e9 / rate_per_s;
    if rate_per_s > 0.0 && gap.is_finite() && gap > 0.0 {
        return Ok(gap);
    }
    Err(LoadError::new(
        "schedule.rate_per_s",
        rate_per_s,
        "a finite number above 0",
    ))
}

fn end_ns(duration_s: Option<f64>) -> Result<u64, LoadError> {
    match duration_s {
        None => Ok(u64::MAX),
        Some(seconds) if seconds > 0.0 && seconds.is_finite() => Ok((seconds * 1e9).round() as u64),
        Some(seconds) => Err(LoadError::new("stop.duration_s", seconds, "a finite number above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_table() {
        let table: [(f64, Option<f64>, u64, Option<u64>); 8] = [
            (1000.0, None, 0, Some(0)),
            (1000.0, None, 1, Some(1_000_000)),
            (1000.0, None, 3_600_000, Some(3_600_000_000_000)),
            (3.0, None, 1, Some(333_333_333)),
            (3.0, None, 3, Some(1_000_000_000)),
            (1000.0, Some(1.0), 999, Some(999_000_000)),
            (1000.0, Some(1.0), 1000, None),
            (0.5, None, 2, Some(4_000_000_000)),
        ];
        for (rate, duration, index, due) in table {
            assert_eq!(
                Constant::new(rate, duration).unwrap().due(index),
                due,
                "{rate} {duration:?} {index}"
            );
        }
    }

    #[test]
    fn rates_and_durations_that_cannot_be_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Constant::new(rate, None).unwrap_err();
            assert_eq!(error.field, "schedule.rate_per_s");
            assert!(Poisson::new(rate, None, 1).is_err());
        }
        assert_eq!(Constant::new(1.0, Some(0.0)).unwrap_err().field, "stop.duration_s");
    }

    #[test]
    fn poisson_is_pure_in_seed_and_index() {
        let mut forward = Poisson::new(1000.0, None, 7).unwrap();
        let dues: Vec<_> = (0..100).map(|index| forward.due(index)).collect();
        assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(forward.due(99), dues[99]);
        assert_eq!(forward.due(3), dues[3]);
        let mut every_third = Poisson::new(1000.0, None, 7).unwrap();
        assert_eq!(
            (0..99)
                .step_by(3)
                .map(|index| every_third.due(index))
                .collect::<Vec<_>>(),
            { dues.iter().take(99).step_by(3).copied().collect::<Vec<_>>() }
        );
        assert_ne!(Poisson::new(1000.0, None, 8).unwrap().due(0), dues[0]);
    }

    #[test]
    fn poisson_gaps_have_mean_and_spread_of_an_exponential() {
        let mut poisson = Poisson::new(1e6, None, 3).unwrap();
        let count = 100_000;
        let dues: Vec<f64> = (0..count).map(|index| poisson.due(index).unwrap() as f64).collect();
        let gaps: Vec<f64> = dues.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        // Standard errors are 0.32% and about 0.45%.
        assert!((mean / 1000.0 - 1.0).abs() < 0.013, "{mean}");
        assert!((deviation / 1000.0 - 1.0).abs() < 0.02, "{deviation}");
        let mut ending = Poisson::new(1000.0, Some(1.0), 3).unwrap();
        assert_eq!(ending.due(2000), None);
    }
}
