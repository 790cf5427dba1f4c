//! Histograms of times in nanoseconds: three significant digits from 1 ns to beyond an hour, longer times counted at the end of the range.

use hdrhistogram::Histogram as Hdr;

use steelyard_workload::OrderError;

/// Longest time that is distinguished: 2 hours.
pub const MAX_NS: u64 = 7_200_000_000_000;

/// Counts of times in buckets no wider than 1/1000 of their value. About 280 KB each.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Hdr<u64>,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Result<Self, OrderError> {
        let counts = Hdr::new_with_bounds(1, MAX_NS, 3)
            .map_err(|error| OrderError::new("histogram", error, "bounds that the library accepts"))?;
        Ok(Self { counts })
    }

    /// Count one time; 0 counts as 1 ns, more than `MAX_NS` as `MAX_NS`.
    pub fn record(&mut self, ns: u64) {
        self.counts.saturating_record(ns.clamp(1, MAX_NS));
    }

    /// Add the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (low, _, count) in other.buckets() {
            self.counts.saturating_record_n(low, count);
        }
    }

    /// Forget all counts.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Number of times counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Nanoseconds at quantile `q` in 0..=1: the upper bound of the bucket that holds it. 0 if empty.
    pub fn value_at_quantile(&self, q: f64) -> u64 {
        self.counts.value_at_quantile(q)
    }

    /// Mean of the times counted, nanoseconds; 0 if empty.
    pub fn mean(&self) -> f64 {
        self.counts.mean()
    }

    /// Occupied buckets in ascending order: `(low_ns, high_ns, count)`, both bounds inclusive.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        self.counts
            .iter_recorded()
            .map(|step| step.value_iterated_to())
            .map(|value| {
                (
                    self.counts.lowest_equivalent(value),
                    self.counts.highest_equivalent(value),
                    self.counts.count_at(value),
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values_to_three_digits() {
        let mut histogram = Histogram::new().unwrap();
        for ns in [1, 999, 400_200, 400_300, 10_000_300_000] {
            histogram.record(ns);
        }
        assert_eq!(histogram.count(), 5);
        assert_eq!(
            histogram.buckets(),
            [
                (1, 1, 1),
                (999, 999, 1),
                (400_128, 400_383, 2),
                (9_999_220_736, 10_007_609_343, 1)
            ]
        );
        assert_eq!(histogram.value_at_quantile(0.5), 400_383);
        assert_eq!(histogram.value_at_quantile(0.0), 1);
    }

    #[test]
    fn ends_are_saturated() {
        let mut histogram = Histogram::new().unwrap();
        histogram.record(0);
        histogram.record(u64::MAX);
        let buckets = histogram.buckets();
        assert_eq!(buckets[0], (1, 1, 1));
        assert!((buckets[1].0..=buckets[1].1).contains(&MAX_NS));
    }

    #[test]
    fn whole_is_the_sum_of_its_parts() {
        let (mut whole, mut left, mut right) = (
            Histogram::new().unwrap(),
            Histogram::new().unwrap(),
            Histogram::new().unwrap(),
        );
        for i in 0..10_000u64 {
            let ns = steelyard_workload::random::mix(i) % 50_000_000;
            whole.record(ns);
            if i % 3 == 0 { left.record(ns) } else { right.record(ns) }
        }
        left.merge(&right);
        assert_eq!(left.buckets(), whole.buckets());
        assert_eq!(left.count(), 10_000);
        left.clear();
        assert_eq!((left.count(), left.buckets().len()), (0, 0));
    }
}
