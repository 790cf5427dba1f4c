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

/// A counter of a process to which the kernel adds that of each child that the process has waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inherited {
    /// The process's own, and what was added.
    before: Option<(u64, u64)>,
    /// Counted of children that have ended, and not yet seen to be added.
    owed: u64,
}

impl Inherited {
    /// The counter of a process that was born since the reading before.
    pub fn from_zero() -> Self {
        Self {
            before: Some((0, 0)),
            owed: 0,
        }
    }

    /// Growth since the last value of what is its own and of what was added, without what is owed. None at the first
    /// reading, without a value, and when a counter went backwards.
    pub fn growth(&mut self, now: Option<(u64, u64)>) -> Option<f64> {
        let (own, added) = now?;
        let (own_before, added_before) = self.before.replace((own, added))?;
        let (own, added) = (own.checked_sub(own_before)?, added.checked_sub(added_before)?);
        let paid = added.min(self.owed);
        self.owed -= paid;
        #[allow(clippy::cast_precision_loss)] // differences of one interval are far below 2^53
        Some((own + added - paid) as f64)
    }

    /// Takes over what a child's counter had reached when it was last read.
    pub fn owe(&mut self, child: &Self) {
        let (own, added) = child.before.unwrap_or_default();
        self.owed += own + added + child.owed;
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
    fn what_a_child_used_counts_once() {
        let mut parent = Inherited::default();
        assert_eq!(parent.growth(Some((10, 0))), None);
        let mut child = Inherited::from_zero();
        assert_eq!(child.growth(Some((7, 0))), Some(7.0));
        parent.owe(&child);
        assert_eq!(parent.growth(Some((11, 0))), Some(1.0), "it was not waited for yet");
        assert_eq!(
            parent.growth(Some((11, 9))),
            Some(2.0),
            "what it used after its last reading"
        );
        assert_eq!(parent.growth(Some((11, 12))), Some(3.0), "a child that was never seen");
    }

    #[test]
    fn a_parent_that_waits_for_no_child_keeps_its_own() {
        let mut parent = Inherited::from_zero();
        let mut child = Inherited::from_zero();
        child.growth(Some((100, 0)));
        parent.owe(&child);
        assert_eq!(parent.growth(Some((5, 0))), Some(5.0));
    }

    #[test]
    fn no_time_no_rate() {
        let mut counter = Counter::default();
        counter.rate(Some(1), 0.0);
        assert_eq!(counter.rate(Some(2), 0.0), None);
    }
}
