//! A medium on a slower clock: dilation.
//!
//! A medium whose rates are divided by k and whose delays and slots are multiplied by k is the same medium with every time
//! multiplied by k. So no medium knows of dilation.

use crate::config::ConfigError;
use crate::medium::{Counters, Delivery, Frame, Loss, Medium};

/// Least and most dilation.
const RANGE: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

/// A medium of which every time is multiplied by a factor.
pub struct Dilated {
    medium: Box<dyn Medium>,
    factor: f64,
}

impl Dilated {
    /// `medium`, its times multiplied by `factor`; itself if that is 1.
    pub fn around(medium: Box<dyn Medium>, factor: f64) -> Result<Box<dyn Medium>, ConfigError> {
        if !RANGE.contains(&factor) {
            return Err(ConfigError::Dilation(factor));
        }
        #[allow(clippy::float_cmp)] // exactly what means "none"
        let plain = factor == 1.0;
        Ok(if plain {
            medium
        } else {
            Box::new(Self { medium, factor })
        })
    }

    /// The medium's time at a time of the caller. Half a nanosecond keeps `inner(outer(t)) >= t` in spite of rounding.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )] // 2^53 ns are 104 days
    fn inner(&self, outer_ns: u64) -> u64 {
        ((outer_ns as f64 + 0.5) / self.factor) as u64
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    fn outer(&self, inner_ns: u64) -> u64 {
        (inner_ns as f64 * self.factor).ceil() as u64
    }
}

impl Medium for Dilated {
    fn offer(&mut self, now_ns: u64, frame: Frame) -> bool {
        self.medium.offer(self.inner(now_ns), frame)
    }

    fn due_ns(&self) -> Option<u64> {
        self.medium.due_ns().map(|due| self.outer(due))
    }

    fn wake_ns(&self) -> Option<u64> {
        self.medium.wake_ns().map(|wake| self.outer(wake))
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Delivery>) {
        let first = out.len();
        self.medium.advance(self.inner(now_ns), out);
        for delivery in &mut out[first..] {
            delivery.at_ns = self.outer(delivery.at_ns);
        }
    }

    fn losses(&mut self, out: &mut Vec<(u64, Loss)>) {
        self.medium.losses(out);
    }

    fn counters(&self) -> Counters {
        let counters = self.medium.counters();
        Counters {
            busy_ns: self.outer(counters.busy_ns),
            ..counters
        }
    }
}
