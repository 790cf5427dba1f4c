//! Numbers of a program's distributions, whole or with a fraction.

use steelyard_wire::program::DistributionSpec;

use crate::OrderError;
use crate::distributions::Distribution;
use crate::random::{Random, unit};

/// A distribution, ready to be drawn from.
#[derive(Clone, Debug)]
pub struct Numbers {
    whole: Distribution,
    real: Real,
    /// Whether it is a sequence, whose numbers follow from the position and not from chance.
    is_sequence: bool,
}

/// What `Distribution`, which is whole numbers, leaves out.
#[derive(Clone, Copy, Debug)]
enum Real {
    AsWhole,
    Fixed(f64),
    Uniform { min: f64, width: f64 },
}

impl Numbers {
    /// A distribution ready to be drawn from. Errors: parameters that are not possible.
    pub fn new(distribution: &DistributionSpec) -> Result<Self, OrderError> {
        let real = match *distribution {
            DistributionSpec::Fixed { value } => Real::Fixed(value),
            DistributionSpec::Uniform { min, max } if min.fract() != 0.0 || max.fract() != 0.0 => {
                Real::Uniform { min, width: max - min }
            }
            _ => Real::AsWhole,
        };
        let mut inner = distribution;
        while let DistributionSpec::Inverted { of } = inner {
            inner = of;
        }
        Ok(Self {
            whole: Distribution::new(distribution)?,
            real,
            is_sequence: matches!(inner, DistributionSpec::Sequence { .. }),
        })
    }

    /// One number, always.
    pub fn fixed(value: i64) -> Result<Self, OrderError> {
        Self::new(&DistributionSpec::Fixed { value: value as f64 })
    }

    /// A whole number; `position` is the index or the key by which a sequence goes.
    #[inline]
    pub fn whole(&self, random: Random, position: u64) -> i64 {
        self.whole.value(self.bits(random, position))
    }

    /// A number with its fraction, where the distribution has one.
    #[inline]
    pub fn real(&self, random: Random, position: u64) -> f64 {
        match self.real {
            Real::Fixed(value) => value,
            Real::Uniform { min, width } => min + width * unit(random.bits(0)),
            Real::AsWhole => self.whole(random, position) as f64,
        }
    }

    #[inline]
    fn bits(&self, random: Random, position: u64) -> [u64; 2] {
        if self.is_sequence {
            [position, 0]
        } else {
            [random.bits(0), random.bits(1)]
        }
    }

    /// The least and the greatest number that can occur.
    pub fn bounds(&self) -> (i64, i64) {
        self.whole.bounds()
    }

    /// The number that it always is.
    pub fn constant(&self) -> Option<i64> {
        let (min, max) = self.bounds();
        (min == max).then_some(min)
    }

    /// The same, refused where numbers outside of `allowed` can occur.
    pub fn within(self, allowed: std::ops::RangeInclusive<i64>, field: &'static str) -> Result<Self, OrderError> {
        let (min, max) = self.bounds();
        if allowed.contains(&min) && allowed.contains(&max) {
            return Ok(self);
        }
        let range = format!("{} to {}", allowed.start(), allowed.end());
        Err(OrderError::new(field, format!("numbers of {min} to {max}"), range))
    }
}
