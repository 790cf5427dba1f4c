//! Counters that only grow, as change per second.

/// Remembers the reading before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    before: Option<u64>,
}

impl Counter {
    /// Growth since the reading before. None at the first reading, after a gap, and when the counter went backwards (it was reset).
    pub fn growth(&mut self, now: Option<u64>) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, now);
        #[allow(clippy::cast_precision_loss)] // differences of one interval are far below 2^53
        Some(now?.checked_sub(before?)? as f64)
    }

    /// Growth per second.
    pub fn rate(&mut self, now: Option<u64>, elapsed_s: f64) -> Option<f64> {
        self.growth(now)
            .filter(|_| elapsed_s > 0.0)
            .map(|growth| growth / elapsed_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_growth_gaps_and_resets() {
        let mut counter = Counter::default();
        let readings = [Some(10), Some(30), None, Some(50), Some(60), Some(5), Some(5)];
        let rates: Vec<Option<f64>> = readings.into_iter().map(|now| counter.rate(now, 2.0)).collect();
        assert_eq!(rates, [None, Some(10.0), None, None, Some(5.0), None, Some(0.0)]);
    }

    #[test]
    fn no_time_no_rate() {
        let mut counter = Counter::default();
        counter.rate(Some(1), 0.0);
        assert_eq!(counter.rate(Some(2), 0.0), None);
    }
}
