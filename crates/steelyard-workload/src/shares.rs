//! Shares of several things, and which of them a random number falls to.

use std::sync::Arc;

use crate::OrderError;

/// Parts of [0, 1), one for each share.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// Upper ends of the parts.
    ends: Arc<[f64]>,
}

impl Shares {
    /// Divides shares by their sum. Errors: they have none, by the name of their field.
    pub fn new(shares: &[f64], field: &'static str) -> Result<Self, OrderError> {
        let sum: f64 = shares.iter().sum();
        if !(shares.iter().all(|share| share.is_finite() && *share >= 0.0) && sum > 0.0 && sum.is_finite()) {
            let allowed = "numbers of at least 0 with a sum above 0";
            return Err(OrderError::new(field, format!("{shares:?}"), allowed));
        }
        let last = shares.iter().rposition(|share| *share > 0.0).unwrap_or(0);
        let mut end = 0.0;
        let end_of = |(number, share): (usize, &f64)| {
            end += share / sum;
            // Rounding must not leave a gap below 1, nor give it to one that has no share.
            if number >= last { 1.0 } else { end }
        };
        Ok(Self {
            ends: shares.iter().enumerate().map(end_of).collect(),
        })
    }

    /// Whose part has `unit`.
    #[inline]
    pub fn at(&self, unit: f64) -> usize {
        let number = if self.ends.len() < 16 {
            self.ends.iter().position(|end| unit < *end)
        } else {
            Some(self.ends.partition_point(|end| *end <= unit))
        };
        number.unwrap_or(0).min(self.ends.len() - 1)
    }
}
