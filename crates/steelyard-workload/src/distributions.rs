//! Distributions of a program's numbers, as pure functions of random bits. A new distribution is added here, to `Form`.
//!
//! `exponential`, `gaussian`, `extreme` and `inverted` are those of cassandra-stress 3.11's options, peculiarities included: which
//! mean and scale follow from the bounds, that what falls outside is counted at the bounds, that fractions are cut off towards zero.
//! (`uniform` is the same for bounds that are not negative; below 0 the tool never gives the least and gives 0 twice as often.)
//! `tests/stress_reference.rs` holds them against what the tool itself drew. The rest are YCSB's, see `distribution`.

use std::f64::consts::TAU;

use steelyard_wire::program::DistributionSpec;

use crate::OrderError;
use crate::random::unit;
use crate::ycsb_distributions::{Hotspot, ScrambledZipfian, ZIPFIAN_CONSTANT, Zipfian, zeta_of};

const DEVIATIONS_TO_THE_END: f64 = 3.0;
/// Most quanta of a QEXTREME: its bounds are kept in memory.
const MAX_QUANTA: u32 = 1_000_000;

/// A distribution, ready to be drawn from.
#[derive(Clone, Debug)]
pub struct Distribution(pub(crate) Form);

#[derive(Clone, Debug)]
pub(crate) enum Form {
    Fixed(i64),
    /// From min on, again from min after max.
    Sequence(Range),
    Uniform(Range),
    Zipfian(Range, Zipfian),
    Scrambled(Range, ScrambledZipfian),
    Hotspot(Range, Hotspot),
    Exponential(Range, f64),
    Gaussian(Range, Normal),
    Extreme(Range, Weibull),
    Quantized(Quantized),
    Inverted(Box<Form>, Range),
}

/// Both bounds inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub min: i64,
    pub max: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Normal {
    pub mean: f64,
    pub deviation: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Weibull {
    shape: f64,
    scale: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Quantized {
    range: Range,
    weibull: Weibull,
    /// First number of each quantum, and one after the last.
    bounds: Box<[i64]>,
}

impl Distribution {
    /// Check the parameters and compute what follows from them. A zipfian costs a power for each of its first million items.
    pub fn new(distribution: &DistributionSpec) -> Result<Self, OrderError> {
        Form::new(distribution).map(Self)
    }

    /// The number for 128 random bits; for a sequence `bits[0]` is the index.
    #[inline]
    pub fn value(&self, bits: [u64; 2]) -> i64 {
        self.0.value(bits)
    }

    /// The least and the greatest number that can occur.
    pub fn bounds(&self) -> (i64, i64) {
        let range = self.0.range();
        (range.min, range.max)
    }
}

impl Form {
    fn new(distribution: &DistributionSpec) -> Result<Self, OrderError> {
        Ok(match *distribution {
            DistributionSpec::Fixed { value } if value.is_finite() => Self::Fixed(value as i64),
            DistributionSpec::Fixed { value } => return Err(OrderError::new("fixed.value", value, "a finite number")),
            DistributionSpec::Sequence { min, max } => Self::Sequence(Range::new("sequence", min, max)?),
            DistributionSpec::Uniform { min, max } => Self::Uniform(Range::of_reals(min, max)?),
            DistributionSpec::Zipfian { min, max, theta } => Self::zipfian(Range::new("zipfian", min, max)?, theta)?,
            DistributionSpec::Latest { min, max } => {
                let range = Range::new("latest", min, max)?;
                Self::Inverted(Box::new(Self::zipfian(range, ZIPFIAN_CONSTANT)?), range)
            }
            DistributionSpec::ScrambledZipfian { min, max } => {
                let range = Range::new("scrambled-zipfian", min, max)?;
                Self::Scrambled(range, ScrambledZipfian::new(0, range.count("scrambled-zipfian")?))
            }
            DistributionSpec::Hotspot {
                min,
                max,
                data_fraction,
                operation_fraction,
            } => Self::hotspot(Range::new("hotspot", min, max)?, data_fraction, operation_fraction)?,
            DistributionSpec::Exponential { min, max } => Self::exponential(Range::new("exponential", min, max)?)?,
            DistributionSpec::Gaussian {
                min,
                max,
                mean,
                deviation,
            } => Self::gaussian(Range::new("gaussian", min, max)?, mean, deviation)?,
            DistributionSpec::Extreme {
                min,
                max,
                shape,
                quanta,
            } => Self::extreme(Range::new("extreme", min, max)?, shape, quanta)?,
            DistributionSpec::Inverted { ref of } => {
                let form = Self::new(of)?;
                let range = form.range();
                Self::Inverted(Box::new(form), range)
            }
        })
    }

    fn zipfian(range: Range, theta: f64) -> Result<Self, OrderError> {
        if !(theta > 0.0 && theta < 1.0) {
            return Err(OrderError::new("zipfian.theta", theta, "a number above 0 and below 1"));
        }
        let count = range.count("zipfian")?;
        let ranks = Zipfian::with_theta(0, count - 1, theta, zeta_of(count, theta));
        Ok(Self::Zipfian(range, ranks))
    }

    fn hotspot(range: Range, data_fraction: f64, operation_fraction: f64) -> Result<Self, OrderError> {
        for (name, fraction) in [
            ("hotspot.data_fraction", data_fraction),
            ("hotspot.operation_fraction", operation_fraction),
        ] {
            if !(0.0..=1.0).contains(&fraction) {
                return Err(OrderError::new(name, fraction, "0 to 1"));
            }
        }
        let hotspot = Hotspot::new(0, range.count("hotspot")?, data_fraction, operation_fraction);
        let (hot, cold) = hotspot.sizes();
        if (hot == 0 && operation_fraction > 0.0) || (cold == 0 && operation_fraction < 1.0) {
            return Err(OrderError::new(
                "hotspot.data_fraction",
                data_fraction,
                "a fraction that leaves a number on each side that gets operations",
            ));
        }
        Ok(Self::Hotspot(range, hotspot))
    }

    /// The mean is such that the fraction 1 / sqrt(max - min) lies beyond the upper bound.
    fn exponential(range: Range) -> Result<Self, OrderError> {
        if range.min == range.max {
            return Ok(Self::Fixed(range.min));
        }
        Ok(Self::Exponential(range, range.width() / beyond("exponential", range)?))
    }

    fn gaussian(range: Range, mean: Option<f64>, deviation: Option<f64>) -> Result<Self, OrderError> {
        if range.min == range.max {
            return Ok(Self::Fixed(range.min));
        }
        let normal = Normal {
            mean: mean.unwrap_or(range.min.wrapping_add(range.max) as f64 / 2.0),
            deviation: deviation.unwrap_or(range.width() / 2.0 / DEVIATIONS_TO_THE_END),
        };
        if !normal.mean.is_finite() {
            return Err(OrderError::new("gaussian.mean", normal.mean, "a finite number"));
        }
        if !(normal.deviation > 0.0 && normal.deviation.is_finite()) {
            return Err(OrderError::new(
                "gaussian.deviation",
                normal.deviation,
                "a finite number above 0",
            ));
        }
        Ok(Self::Gaussian(range, normal))
    }

    /// As `exponential`, with a shape; in quanta the chance is the same for each number of one quantum.
    fn extreme(range: Range, shape: f64, quanta: Option<u32>) -> Result<Self, OrderError> {
        if !(shape > 0.0 && shape.is_finite()) {
            return Err(OrderError::new("extreme.shape", shape, "a finite number above 0"));
        }
        if let Some(0 | MAX_QUANTA..) = quanta {
            return Err(OrderError::new("extreme.quanta", quanta.unwrap_or(0), "1 to 999999"));
        }
        if range.min == range.max {
            return Ok(Self::Fixed(range.min));
        }
        let scale = range.width() / beyond("extreme", range)?.powf(1.0 / shape);
        let weibull = Weibull { shape, scale };
        Ok(match quanta {
            None => Self::Extreme(range, weibull),
            Some(quanta) => Self::Quantized(Quantized::new(range, weibull, quanta)),
        })
    }

    fn value(&self, [first, second]: [u64; 2]) -> i64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Sequence(range) => range.at(first % range.wrapping_count()),
            Self::Uniform(range) => {
                let count = u128::from(range.max.abs_diff(range.min)) + 1;
                range.at(((u128::from(first) * count) >> 64) as u64)
            }
            Self::Zipfian(range, ranks) => range.at(ranks.value(unit(first))),
            Self::Scrambled(range, ranks) => range.at(ranks.value(unit(first))),
            Self::Hotspot(range, hotspot) => range.at(hotspot.value(unit(first), second)),
            Self::Exponential(range, mean) => range.offset(mean * -(1.0 - unit(first)).ln()),
            Self::Gaussian(range, normal) => {
                // Box and Muller, "A note on the generation of random normal deviates", 1958.
                let deviate = (-2.0 * (1.0 - unit(first)).ln()).sqrt() * (TAU * unit(second)).cos();
                range.bound(normal.deviation * deviate + normal.mean)
            }
            Self::Extreme(range, weibull) => range.offset(weibull.quantile(unit(first))),
            Self::Quantized(quantized) => quantized.value(unit(first), unit(second)),
            Self::Inverted(of, range) => range
                .max
                .wrapping_sub(of.value([first, second]).wrapping_sub(range.min)),
        }
    }

    pub(crate) fn range(&self) -> Range {
        match self {
            Self::Fixed(value) => Range {
                min: *value,
                max: *value,
            },
            Self::Quantized(quantized) => quantized.range,
            Self::Sequence(range)
            | Self::Uniform(range)
            | Self::Zipfian(range, _)
            | Self::Scrambled(range, _)
            | Self::Hotspot(range, _)
            | Self::Exponential(range, _)
            | Self::Gaussian(range, _)
            | Self::Extreme(range, _)
            | Self::Inverted(_, range) => *range,
        }
    }
}

impl Range {
    fn new(name: &'static str, min: i64, max: i64) -> Result<Self, OrderError> {
        if min > max {
            return Err(OrderError::new(name, format!("{min}..{max}"), "min <= max"));
        }
        Ok(Self { min, max })
    }

    fn of_reals(min: f64, max: f64) -> Result<Self, OrderError> {
        if !(min.is_finite() && max.is_finite()) {
            return Err(OrderError::new("uniform", format!("{min}..{max}"), "finite numbers"));
        }
        Self::new("uniform", min as i64, max as i64)
    }

    /// How many numbers there are, where that must be counted.
    fn count(self, name: &'static str) -> Result<u64, OrderError> {
        let count = self.wrapping_count();
        if count == 0 || count > 1 << 62 {
            return Err(OrderError::new(
                name,
                format!("{}..{}", self.min, self.max),
                "at most 2^62 numbers",
            ));
        }
        Ok(count)
    }

    /// How many numbers there are; for all of i64 one fewer, so that nothing is divided by 0.
    fn wrapping_count(self) -> u64 {
        self.max.abs_diff(self.min).saturating_add(1)
    }

    fn width(self) -> f64 {
        self.max.abs_diff(self.min) as f64
    }

    /// The number with that number, from 0.
    fn at(self, number: u64) -> i64 {
        self.min.wrapping_add_unsigned(number)
    }

    /// Uniform as cassandra-stress has it: a real number between min and max + 1, without its fraction.
    pub(crate) fn uniform(self, unit: f64) -> i64 {
        let (lower, upper) = (self.min as f64, self.max as f64 + 1.0);
        self.bound(unit * upper + (1.0 - unit) * lower)
    }

    /// The number without its fraction, within the bounds.
    pub(crate) fn bound(self, value: f64) -> i64 {
        (value as i64).clamp(self.min, self.max)
    }

    /// The number, counted from min, without its fraction, within the bounds.
    pub(crate) fn offset(self, value: f64) -> i64 {
        self.at((value as i64).max(0).unsigned_abs().min(self.max.abs_diff(self.min)))
    }
}

/// The quantile of the unit exponential distribution that the upper bound is put at: 1 / sqrt(max - min) of it lies beyond. Of two
/// neighbours that is all of it.
fn beyond(name: &'static str, range: Range) -> Result<f64, OrderError> {
    if range.max.abs_diff(range.min) == 1 {
        let read = format!("{}..{}", range.min, range.max);
        return Err(OrderError::new(name, read, "max = min, or max >= min + 2"));
    }
    let probability = 1.0 - (1.0 / range.width()).sqrt();
    Ok(-(1.0 - probability).ln())
}

impl Weibull {
    pub(crate) fn quantile(self, probability: f64) -> f64 {
        self.scale * (-(1.0 - probability).ln()).powf(1.0 / self.shape)
    }
}

impl Quantized {
    fn new(range: Range, weibull: Weibull, quanta: u32) -> Self {
        let inner = (1..quanta).map(|i| range.offset(weibull.quantile(f64::from(i) / f64::from(quanta))));
        let bounds = std::iter::once(range.min)
            .chain(inner)
            .chain(std::iter::once(range.max.saturating_add(1)))
            .collect();
        Self { range, weibull, bounds }
    }

    pub(crate) fn value(&self, first: f64, second: f64) -> i64 {
        let drawn = self.range.offset(self.weibull.quantile(first));
        // A number that is the first of a quantum counts in the one before. The tool fails for the very first; it stays here.
        let after = self.bounds.partition_point(|bound| *bound < drawn);
        let quantum = after.saturating_sub(1);
        let (low, high) = (self.bounds[quantum], self.bounds[quantum + 1]);
        low.wrapping_add((second * high.abs_diff(low) as f64) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    fn drawn(distribution: &DistributionSpec) -> Vec<i64> {
        let compiled = Distribution::new(distribution).unwrap();
        let random = Random::new(3, Purpose::Key);
        (0..20_000)
            .map(|index| compiled.value([random.at(index).bits(0), random.at(index).bits(1)]))
            .collect()
    }

    fn share(values: &[i64], of: impl Fn(i64) -> bool) -> f64 {
        values.iter().filter(|value| of(**value)).count() as f64 / values.len() as f64
    }

    #[test]
    fn both_bounds_occur_and_nothing_beyond_them() {
        let inverted = DistributionSpec::Inverted {
            of: Box::new(DistributionSpec::Exponential { min: -4, max: 5 }),
        };
        for distribution in [
            DistributionSpec::Uniform { min: -4.0, max: 5.0 },
            DistributionSpec::Sequence { min: -4, max: 5 },
            DistributionSpec::ScrambledZipfian { min: -4, max: 5 },
            DistributionSpec::Zipfian {
                min: -4,
                max: 5,
                theta: 0.5,
            },
            DistributionSpec::Latest { min: -4, max: 5 },
            DistributionSpec::Exponential { min: -4, max: 5 },
            DistributionSpec::Gaussian {
                min: -4,
                max: 5,
                mean: None,
                deviation: None,
            },
            DistributionSpec::Extreme {
                min: -4,
                max: 5,
                shape: 1.0,
                quanta: Some(3),
            },
            inverted,
        ] {
            let values = drawn(&distribution);
            assert_eq!(values.iter().min(), Some(&-4), "{distribution:?}");
            assert_eq!(values.iter().max(), Some(&5), "{distribution:?}");
            assert_eq!(Distribution::new(&distribution).unwrap().bounds(), (-4, 5));
        }
    }

    #[test]
    fn whole_of_i64_is_a_range_too() {
        for distribution in [
            DistributionSpec::Uniform {
                min: i64::MIN as f64,
                max: i64::MAX as f64,
            },
            DistributionSpec::Sequence {
                min: i64::MIN,
                max: i64::MAX,
            },
            DistributionSpec::Exponential {
                min: i64::MIN,
                max: i64::MAX,
            },
            DistributionSpec::Gaussian {
                min: i64::MIN,
                max: i64::MAX,
                mean: None,
                deviation: None,
            },
            DistributionSpec::Extreme {
                min: i64::MIN,
                max: i64::MAX,
                shape: 0.5,
                quanta: Some(4),
            },
            DistributionSpec::Inverted {
                of: Box::new(DistributionSpec::Exponential {
                    min: i64::MIN,
                    max: i64::MAX,
                }),
            },
        ] {
            let compiled = Distribution::new(&distribution).unwrap();
            for bits in [[0, 0], [u64::MAX, u64::MAX], [1 << 63, 1], [u64::MAX, 0]] {
                compiled.value(bits);
            }
        }
        assert!(
            Distribution::new(&DistributionSpec::Latest {
                min: i64::MIN,
                max: i64::MAX
            })
            .is_err()
        );
    }

    #[test]
    fn popular_ends_are_where_they_belong() {
        let zipfian = drawn(&DistributionSpec::Zipfian {
            min: 1,
            max: 100,
            theta: 0.99,
        });
        let latest = drawn(&DistributionSpec::Latest { min: 1, max: 100 });
        let hotspot = drawn(&DistributionSpec::Hotspot {
            min: 1,
            max: 100,
            data_fraction: 0.1,
            operation_fraction: 0.9,
        });
        assert!(share(&zipfian, |value| value == 1) > 0.15);
        assert!(share(&latest, |value| value == 100) > 0.15);
        assert!((share(&hotspot, |value| value <= 10) - 0.9).abs() < 0.02);
    }

    #[test]
    fn parameters_without_a_meaning_are_refused_by_name() {
        let nan = f64::NAN;
        for (distribution, field) in [
            (DistributionSpec::Fixed { value: nan }, "fixed.value"),
            (DistributionSpec::Uniform { min: 2.0, max: 1.0 }, "uniform"),
            (DistributionSpec::Uniform { min: nan, max: 1.0 }, "uniform"),
            (DistributionSpec::Sequence { min: 2, max: 1 }, "sequence"),
            (
                DistributionSpec::Zipfian {
                    min: 1,
                    max: 2,
                    theta: 1.0,
                },
                "zipfian.theta",
            ),
            (DistributionSpec::Exponential { min: 1, max: 2 }, "exponential"),
            (
                DistributionSpec::Gaussian {
                    min: 1,
                    max: 2,
                    mean: None,
                    deviation: Some(0.0),
                },
                "gaussian.deviation",
            ),
            (
                DistributionSpec::Gaussian {
                    min: 1,
                    max: 2,
                    mean: Some(nan),
                    deviation: None,
                },
                "gaussian.mean",
            ),
            (
                DistributionSpec::Extreme {
                    min: 1,
                    max: 9,
                    shape: 0.0,
                    quanta: None,
                },
                "extreme.shape",
            ),
            (
                DistributionSpec::Extreme {
                    min: 1,
                    max: 9,
                    shape: 1.0,
                    quanta: Some(0),
                },
                "extreme.quanta",
            ),
            (
                DistributionSpec::Hotspot {
                    min: 1,
                    max: 9,
                    data_fraction: 0.0,
                    operation_fraction: 0.5,
                },
                "hotspot.data_fraction",
            ),
            (
                DistributionSpec::Hotspot {
                    min: 1,
                    max: 9,
                    data_fraction: 0.5,
                    operation_fraction: 1.5,
                },
                "hotspot.operation_fraction",
            ),
        ] {
            assert_eq!(
                Distribution::new(&distribution).unwrap_err().field,
                field,
                "{distribution:?}"
            );
        }
    }
}
